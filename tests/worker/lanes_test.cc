// Lanes over a recorded driver whose memory keeps its bytes: who sees whose.
#include "daemon/worker/lanes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "ipc/calls/limits.h"
#include "tests/worker/recording_driver.h"

namespace worker {
namespace {

using ipc::limits::MiB;
constexpr uint64_t kLane = 5;
constexpr uint64_t kStep = 2 * MiB;

class LanesTest : public testing::Test {
 protected:
  LanesTest() : recording_(FreshRecording()), environment_(RecordingEnvironment()) {
    recording_.capacity_bytes = 256 * MiB;
    for (uint64_t i = 0; i < 4; ++i) members_.push_back(Member(i));
  }
  CUdeviceptr Base(size_t session) const {
    return ipc::limits::kSlotBase + session * ipc::limits::kSlotBytes +
           ipc::limits::kEphemeralOffset;
  }
  std::unique_ptr<LaneMember> Member(uint64_t session, uint32_t uid = 1000) {
    return std::make_unique<LaneMember>(session + 1, uid, Base(session), job_);
  }
  LaneMember* member(size_t session) { return members_[session].get(); }
  CUmemGenericAllocationHandle HandleAt(CUdeviceptr address) {
    const auto found = recording_.mappings.find(address);
    return found == recording_.mappings.end() ? 0 : found->second.handle;
  }

  Recording& recording_;
  Environment environment_;
  LaneTable lanes_{&environment_};
  std::shared_ptr<JobMemory> job_ = std::make_shared<JobMemory>();
  std::vector<std::unique_ptr<LaneMember>> members_;
};

TEST_F(LanesTest, AllMembersSeeTheSameExtentsInTheSameOrder) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 3 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Join(member(1), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(1), 100 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 100 * MiB) << "one lane, as large as its largest need";
  EXPECT_EQ(job_->used(0), 104 * MiB) << "a job's share is what its sessions reserved";
  for (const Piece& part : lanes_.Look(kLane).parts) {
    EXPECT_LE(part.extent.bytes, kLaneExtentBytesMax);
    EXPECT_EQ(HandleAt(Base(0) + part.address), part.extent.handle);
    EXPECT_EQ(HandleAt(Base(1) + part.address), part.extent.handle);
  }
  lanes_.Leave(member(0));
  lanes_.Leave(member(1));
  EXPECT_TRUE(recording_.mapped.empty());
  EXPECT_EQ(recording_.used_bytes, 100 * MiB) << "the daemon ends a lane";
  EXPECT_EQ(job_->used(0), 0u);
}

TEST_F(LanesTest, ASessionsOwnLaneEndsWithIt) {
  ASSERT_EQ(lanes_.Join(member(0), ipc::control::OwnLaneOf(1), 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 4 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Keep(member(0), Base(0), kStep), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 4 * MiB) << "nobody else is there to take memory from";
  EXPECT_TRUE(lanes_.Drop(member(0), Base(0)));
  lanes_.Leave(member(0));
  EXPECT_EQ(recording_.used_bytes, 0u);
}

TEST_F(LanesTest, LanesNeverSpanUsersOrDevices) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  const std::unique_ptr<LaneMember> other = Member(3, 1001);
  EXPECT_EQ(lanes_.Join(other.get(), kLane, 0), CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(lanes_.Join(member(1), kLane, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(LanesTest, WhatOutlivesItsIterationLeavesTheLane) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Join(member(1), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 48 * MiB), CUDA_SUCCESS);  // 32 + 16
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  recording_.At(Base(0) + 33 * MiB) = 77;
  ASSERT_EQ(lanes_.Keep(member(0), Base(0) + 33 * MiB, MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Keep(member(0), Base(0) + 35 * MiB, MiB), CUDA_SUCCESS);
  lanes_.Exit(member(0));
  ASSERT_EQ(lanes_.Enter(member(1)), CUDA_SUCCESS);
  recording_.At(Base(1) + 33 * MiB) = 1;
  EXPECT_EQ(recording_.At(Base(0) + 33 * MiB), 77) << "nobody else writes what is kept";
  EXPECT_EQ(recording_.used_bytes, 64 * MiB);
  EXPECT_EQ(HandleAt(Base(0)), HandleAt(Base(1))) << "the rest is shared";
  lanes_.Exit(member(1));
  EXPECT_TRUE(lanes_.Drop(member(0), Base(0) + 33 * MiB));
  EXPECT_EQ(lanes_.Reclaim(member(0)), 0u) << "another block lives in it";
  EXPECT_TRUE(lanes_.Drop(member(0), Base(0) + 35 * MiB));
  EXPECT_FALSE(lanes_.Drop(member(0), Base(0) + 35 * MiB));
  EXPECT_EQ(recording_.At(Base(0) + 33 * MiB), 77) << "it may be in use again";
  EXPECT_TRUE(member(0)->has_spare());
  EXPECT_EQ(lanes_.Reclaim(member(0)), 16 * MiB);
  EXPECT_EQ(recording_.used_bytes, 48 * MiB);
  EXPECT_EQ(HandleAt(Base(0) + 32 * MiB), HandleAt(Base(1) + 32 * MiB));
}

TEST_F(LanesTest, WhatIsKeptLiesAcrossAnotherLanesExtents) {
  constexpr uint64_t kOther = kLane + 1;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 2 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 6 * MiB), CUDA_SUCCESS);  // 2 + 4
  ASSERT_EQ(lanes_.Join(member(1), kOther, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(1), 8 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  recording_.At(Base(0) + 2 * MiB) = 77;
  ASSERT_EQ(lanes_.Keep(member(0), Base(0) + 2 * MiB, MiB), CUDA_SUCCESS);
  lanes_.Leave(member(0));
  ASSERT_EQ(lanes_.Join(member(0), kOther, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 8 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  recording_.At(Base(0)) = recording_.At(Base(0) + 7 * MiB) = 1;
  EXPECT_EQ(recording_.At(Base(0) + 2 * MiB), 77);
  lanes_.Exit(member(0));
  ASSERT_EQ(lanes_.Enter(member(1)), CUDA_SUCCESS);
  recording_.At(Base(1) + 2 * MiB) = 1;
  EXPECT_EQ(recording_.At(Base(0) + 2 * MiB), 77);
}

TEST_F(LanesTest, WithoutFreshMemoryTheSessionKeepsTheLane) {
  recording_.capacity_bytes = 4 * MiB;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 4 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Keep(member(0), Base(0), kStep), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(lanes_.Pinned(member(0)));
  EXPECT_TRUE(lanes_.Drop(member(0), Base(0)));
  EXPECT_FALSE(lanes_.Pinned(member(0)));
}

TEST_F(LanesTest, GrowsAllOrNothingAndShrinksAtItsEnd) {
  recording_.capacity_bytes = 64 * MiB;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 32 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Grow(kLane, 128 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(recording_.used_bytes, 32 * MiB);
  EXPECT_EQ(lanes_.Grow(kLane, 60 * MiB), CUDA_SUCCESS);
  lanes_.Shrink(kLane, 40 * MiB);
  EXPECT_EQ(recording_.used_bytes, 48 * MiB) << "an extent is not cut";
  lanes_.Shrink(kLane, 0);
  EXPECT_EQ(recording_.used_bytes, 0u);
  EXPECT_TRUE(recording_.mapped.empty());
}

TEST_F(LanesTest, ManySmallExtentsBecomeFewUnderABudget) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  for (uint64_t bytes = kStep; bytes <= 64 * MiB; bytes += kStep) {
    ASSERT_EQ(lanes_.Reserve(member(0), bytes), CUDA_SUCCESS);
  }
  EXPECT_EQ(lanes_.Look(kLane).parts.size(), 32u);
  EXPECT_EQ(lanes_.Coalesce(kLane, 16 * MiB), 16 * MiB);
  EXPECT_LE(lanes_.Look(kLane).parts.size(), 25u);
  lanes_.Coalesce(kLane, 1024 * MiB);
  EXPECT_LE(lanes_.Look(kLane).parts.size(), 6u);
  EXPECT_EQ(recording_.used_bytes, 64 * MiB);
  EXPECT_EQ(recording_.mapped.size(), lanes_.Look(kLane).parts.size());
}

TEST_F(LanesTest, AnotherWorkersChangesAreTakenOver) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 4 * MiB), CUDA_SUCCESS);
  LaneTable elsewhere(&environment_);
  ASSERT_EQ(elsewhere.Join(member(1), kLane, 0), CUDA_SUCCESS);
  EXPECT_EQ(HandleAt(Base(1)), HandleAt(Base(0))) << "the same memory in both";
  ASSERT_EQ(elsewhere.Reserve(member(1), 8 * MiB), CUDA_SUCCESS);
  recording_.At(Base(1)) = 5;
  ASSERT_EQ(elsewhere.Keep(member(1), Base(1), kStep), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Refresh(kLane), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Look(kLane).parts.size(), 2u);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  recording_.At(Base(0)) = 9;
  EXPECT_EQ(recording_.At(Base(1)), 5);
}

TEST_F(LanesTest, TwoInsideAreABrokenInvariant) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Join(member(1), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  EXPECT_DEATH((void)lanes_.Enter(member(1)), "entered");
}

// Random events against a model: every live block has its own byte, in its iteration and kept
// beyond it; whoever runs scribbles over all that is free, and no live block changes.
class LaneModel {
 public:
  LaneModel(Recording* recording, LaneTable* lanes, std::mt19937* random)
      : recording_(*recording), lanes_(*lanes), random_(*random) {}

  struct Block {
    uint64_t bytes = 0;
    uint8_t value = 0;
    bool kept = false;
  };
  struct Session {
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
    if (session->member->lane() == 0) {
      ASSERT_EQ(lanes_.Join(session->member, kLane + random_() % kLanes, 0), CUDA_SUCCESS);
    } else if (choice < 3) {
      Switch(session);
    } else if (choice < 6) {
      (void)lanes_.Reserve(session->member,
                           session->member->reserved_bytes() + random_() % (12 * MiB));
    } else if (choice < 11 && inside(*session) == session) {
      Allocate(session);
    } else if (choice < 14 && inside(*session) == session) {
      Free(session);
    } else if (choice < 16 && inside(*session) == session) {
      Boundary(session);
    } else if (choice == 16 && inside(*session) == nullptr) {
      lanes_.Shrink(session->member->lane(), LargestNeed(session->member->lane()));
    } else if (choice == 17 && inside(*session) == nullptr) {
      lanes_.Coalesce(session->member->lane(), 32 * MiB);
    } else if (choice == 18 && MayLeave(session)) {
      if (inside(*session) == session) inside_.erase(session->member->lane());
      lanes_.Leave(session->member);
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
    return !lanes_.Pinned(session->member);
  }

  void Switch(Session* session) {
    Session* const before = inside(*session);
    if (before == session) return;
    if (before != nullptr) {
      Boundary(before);
      if (testing::Test::HasFailure() || lanes_.Pinned(before->member)) return;
      lanes_.Exit(before->member);
      inside_.erase(session->member->lane());
    }
    const CUresult entered = lanes_.Enter(session->member);
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
    ASSERT_EQ(lanes_.Drop(session->member, block->first), block->second.kept);
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
      const CUresult result = lanes_.Keep(session->member, block->first, block->second.bytes);
      ASSERT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
      block->second.kept = true;
      kept_ += result == CUDA_SUCCESS;
    }
    if (random_() % 2 == 0) reclaimed_ += lanes_.Reclaim(session->member) != 0;
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
  LaneTable& lanes_;
  std::mt19937& random_;
  std::vector<Session> sessions_;
  std::map<uint64_t, Session*> inside_;  // by lane
  int kept_ = 0;
  int reclaimed_ = 0;
};

TEST_F(LanesTest, NoTwoWritersUnderRandomEvents) {
  const char* const told = std::getenv("LANEWAY_TEST_SEED");
  const unsigned seed = told != nullptr ? static_cast<unsigned>(std::strtoul(told, nullptr, 10))
                                        : std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  LaneModel model(&recording_, &lanes_, &random);
  std::vector<LaneModel::Session> sessions;
  for (size_t i = 0; i < members_.size(); ++i) sessions.push_back({member(i), Base(i), {}});
  model.Run(std::move(sessions), 4'000);
  EXPECT_GT(model.kept(), 20);
  EXPECT_GT(model.reclaimed(), 5);
  for (size_t i = 0; i < members_.size(); ++i) {
    for (const LaneTable::KeptExtent& kept : lanes_.Kept(member(i))) {
      FreePieces(environment_, {kept.piece});
    }
    lanes_.ForgetKept(member(i));
    lanes_.Leave(member(i));
  }
  EXPECT_EQ(job_->used(0), 0u);
  EXPECT_TRUE(recording_.mapped.empty());
}

}  // namespace
}  // namespace worker
