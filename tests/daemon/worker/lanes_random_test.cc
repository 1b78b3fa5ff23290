// Lanes under random events, by two workers: no extent ever has two writers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "tests/daemon/worker/lanes_fixture.h"
#include "tests/harness/seed.h"

namespace worker {
namespace {

// Random events against a model: every live block has its own byte, in its iteration and kept
// beyond it; whoever runs scribbles over all that is free, and no live block changes.
class LaneModel {
 public:
  // `deliver` brings what the tables tell each other.
  LaneModel(Recording* recording, std::function<void()> deliver, std::mt19937* random)
      : recording_(*recording), deliver_(std::move(deliver)), random_(*random) {}

  struct Block {
    uint64_t bytes = 0;
    uint8_t value = 0;
    bool kept = false;
  };
  struct Session {
    LaneTable* lanes;
    LaneMember* member;
    CUdeviceptr base;
    std::map<CUdeviceptr, Block> live;
  };

  void Run(std::vector<Session> sessions, int rounds) {
    sessions_ = std::move(sessions);
    for (int round = 0; round < rounds; ++round) {
      Step(&sessions_[random_() % sessions_.size()]);
      if (testing::Test::HasFailure()) return;
      Check();
    }
  }
  int kept() const { return kept_; }
  int reclaimed() const { return reclaimed_; }

 private:
  static constexpr uint64_t kLanes = 2;

  void Step(Session* session) {
    const unsigned choice = random_() % 20;
    if (choice == 19) deliver_();
    if (session->member->lane() == 0) {
      ASSERT_EQ(session->lanes->Join(session->member, kLane + random_() % kLanes, 0), CUDA_SUCCESS);
    } else if (choice < 3) {
      Switch(session);
    } else if (choice < 6) {
      (void)session->lanes->Reserve(session->member,
                                    session->member->reserved_bytes() + random_() % (12 * MiB));
    } else if (choice < 11 && inside(*session) == session) {
      Allocate(session);
    } else if (choice < 14 && inside(*session) == session) {
      Free(session);
    } else if (choice < 16 && inside(*session) == session) {
      Boundary(session);
    } else if (choice == 16 && inside(*session) == nullptr) {
      deliver_();  // it is lanewayd that asks for it
      session->lanes->Shrink(session->member->lane(), LargestNeed(session->member->lane()));
    } else if (choice == 17 && inside(*session) == nullptr) {
      deliver_();
      session->lanes->Coalesce(session->member->lane(), 32 * MiB);
    } else if (choice == 18 && MayLeave(session)) {
      if (inside(*session) == session) inside_.erase(session->member->lane());
      session->lanes->Leave(session->member);
    }
  }

  Session* inside(const Session& session) {
    const auto found = inside_.find(session.member->lane());
    return found == inside_.end() ? nullptr : found->second;
  }

  uint64_t LargestNeed(uint64_t lane) const {
    uint64_t bytes = 0;
    for (const Session& session : sessions_) {
      if (session.member->lane() == lane) bytes = std::max(bytes, session.member->reserved_bytes());
    }
    return bytes;
  }

  // Between iterations.
  bool MayLeave(Session* session) {
    if (inside(*session) == session) Boundary(session);
    return !session->lanes->Pinned(session->member);
  }

  void Switch(Session* session) {
    Session* const before = inside(*session);
    if (before == session) return;
    if (before != nullptr) {
      Boundary(before);
      if (testing::Test::HasFailure() || before->lanes->Pinned(before->member)) return;
      before->lanes->Exit(before->member);
      inside_.erase(session->member->lane());
    }
    deliver_();  // by way of lanewayd, which is what grants the lane
    const CUresult entered = session->lanes->Enter(session->member);
    // Without room for what must be made anew it stays outside.
    ASSERT_TRUE(entered == CUDA_SUCCESS || entered == CUDA_ERROR_OUT_OF_MEMORY) << entered;
    if (entered == CUDA_SUCCESS) inside_[session->member->lane()] = session;
  }

  bool IsLive(const Session& session, CUdeviceptr address) const {
    auto next = session.live.upper_bound(address);
    if (next == session.live.begin()) return false;
    --next;
    return address < next->first + next->second.bytes;
  }

  void Allocate(Session* session) {
    const uint64_t size = session->member->reserved_bytes();
    if (size == 0) return;
    const CUdeviceptr address = session->base + random_() % (size / MiB) * MiB;
    const uint64_t bytes = std::min((1 + random_() % 4) * MiB, session->base + size - address);
    for (uint64_t at = 0; at < bytes; at += MiB) {
      if (IsLive(*session, address + at)) return;
    }
    const uint8_t value = static_cast<uint8_t>(1 + random_() % 250);
    for (uint64_t at = 0; at < bytes; at += MiB) recording_.At(address + at) = value;
    session->live[address] = {bytes, value};
  }

  void Free(Session* session) {
    if (session->live.empty()) return;
    auto block = session->live.begin();
    std::advance(block, random_() % session->live.size());
    ASSERT_EQ(session->lanes->Drop(session->member, block->first), block->second.kept);
    session->live.erase(block);
  }

  // Some of what was born outlives its iteration, the rest is gone.
  void Boundary(Session* session) {
    for (auto next = session->live.begin(); next != session->live.end();) {
      const auto block = next++;
      if (block->second.kept) continue;
      if (random_() % 4 != 0) {
        session->live.erase(block);
        continue;
      }
      const CUresult result =
          session->lanes->Keep(session->member, block->first, block->second.bytes);
      ASSERT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
      block->second.kept = true;
      kept_ += result == CUDA_SUCCESS;
    }
    if (random_() % 2 == 0) reclaimed_ += session->lanes->Reclaim(session->member) != 0;
  }

  void Scribble() {
    for (const auto& [lane, session] : inside_) {
      for (uint64_t at = 0; at < session->member->reserved_bytes(); at += MiB) {
        const CUdeviceptr address = session->base + at;
        if (!IsLive(*session, address)) recording_.At(address) = 255;
      }
    }
  }

  void Check() {
    Scribble();
    uint64_t sum = 0;
    for (const auto& entry : recording_.extents) sum += entry.second.bytes;
    ASSERT_EQ(sum, recording_.used_bytes);
    ASSERT_LE(sum, recording_.capacity_bytes);
    for (const Session& session : sessions_) {
      for (const auto& [address, block] : session.live) {
        for (uint64_t at = 0; at < block.bytes; at += MiB) {
          ASSERT_EQ(recording_.At(address + at), block.value) << "a live block has lost its bytes";
        }
      }
    }
  }

  Recording& recording_;
  const std::function<void()> deliver_;
  std::mt19937& random_;
  std::vector<Session> sessions_;
  std::map<uint64_t, Session*> inside_;  // by lane
  int kept_ = 0;
  int reclaimed_ = 0;
};

// What each table posts goes to the other ones.
class LaneMail : public DaemonLink {
 public:
  void Post(const ipc::control::WorkerToDaemon& message) override {
    changed_.push_back(std::get<ipc::control::LaneChanged>(message).lane);
  }
  uint64_t Daemon() const override { return 1; }
  void DeliverTo(LaneTable* other) {
    for (const uint64_t lane : std::exchange(changed_, {})) other->OnChanged(lane);
  }

 private:
  std::vector<uint64_t> changed_;
};

using LanesRandomTest = LanesTest;

// The sessions are two workers', of which each hears of the other's changes at times, and before a
// session of its own enters.
TEST_F(LanesRandomTest, NoTwoWritersUnderRandomEvents) {
  std::mt19937 random(static_cast<uint32_t>(harness::Seed()));
  Environment environments[2] = {environment_, environment_};
  LaneMail mail[2];
  for (size_t i = 0; i < 2; ++i) environments[i].daemon = &mail[i];
  LaneTable tables[2] = {LaneTable(&environments[0]), LaneTable(&environments[1])};
  const auto deliver = [&] {
    for (size_t i = 0; i < 2; ++i) mail[i].DeliverTo(&tables[1 - i]);
  };
  LaneModel model(&recording_, deliver, &random);
  std::vector<LaneModel::Session> sessions;
  for (size_t i = 0; i < members_.size(); ++i)
    sessions.push_back({&tables[i % 2], member(i), Base(i), {}});
  model.Run(std::move(sessions), 4'000);
  EXPECT_GT(model.kept(), 20);
  EXPECT_GT(model.reclaimed(), 5);
  deliver();
  for (size_t i = 0; i < members_.size(); ++i) {
    LaneTable* const lanes = &tables[i % 2];
    for (const Piece& kept : lanes->Kept(member(i))) {
      FreePieces(environment_, {kept});
    }
    lanes->ForgetKept(member(i));
    lanes->Leave(member(i));
  }
  EXPECT_EQ(job_->used(0), 0u);
  EXPECT_TRUE(recording_.mapped.empty());
}

}  // namespace
}  // namespace worker
