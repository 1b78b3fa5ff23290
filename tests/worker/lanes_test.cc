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
  EXPECT_TRUE(lanes_.Release(member(0), Base(0)));
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
  EXPECT_TRUE(lanes_.Release(member(0), Base(0) + 33 * MiB));
  EXPECT_EQ(recording_.used_bytes, 64 * MiB) << "another block lives in it";
  EXPECT_TRUE(lanes_.Release(member(0), Base(0) + 35 * MiB));
  EXPECT_FALSE(lanes_.Release(member(0), Base(0) + 35 * MiB));
  EXPECT_EQ(recording_.used_bytes, 48 * MiB);
  EXPECT_EQ(HandleAt(Base(0) + 32 * MiB), HandleAt(Base(1) + 32 * MiB));
}

TEST_F(LanesTest, WithoutFreshMemoryTheSessionKeepsTheLane) {
  recording_.capacity_bytes = 4 * MiB;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 4 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Keep(member(0), Base(0), kStep), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(lanes_.Pinned(member(0)));
  EXPECT_TRUE(lanes_.Release(member(0), Base(0)));
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

// Random events against a model: every live block has its own byte, whoever runs scribbles over all
// that is free in the lane, and no live block changes.
class LaneModel {
 public:
  LaneModel(Recording* recording, LaneTable* lanes, std::mt19937* random)
      : recording_(*recording), lanes_(*lanes), random_(*random) {}

  struct Session {
    LaneMember* member;
    CUdeviceptr base;
    std::map<CUdeviceptr, std::pair<uint64_t, uint8_t>> live;  // kept: bytes, value
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

 private:
  void Step(Session* session) {
    const unsigned choice = random_() % 16;
    if (session->member->lane() == 0) {
      const CUresult joined = lanes_.Join(session->member, kLane, 0);
      ASSERT_TRUE(joined == CUDA_SUCCESS || joined == CUDA_ERROR_NOT_READY);
    } else if (choice < 3) {
      Switch(session);
    } else if (choice < 6) {
      (void)lanes_.Reserve(session->member,
                           session->member->reserved_bytes() + random_() % (12 * MiB));
    } else if (choice < 10 && inside_ == session) {
      Keep(session);
    } else if (choice < 13) {
      Release(session);
    } else if (inside_ == nullptr && choice == 13) {
      lanes_.Shrink(kLane, random_() % (64 * MiB));
    } else if (inside_ == nullptr && choice == 14) {
      lanes_.Coalesce(kLane, 32 * MiB);
    } else if (choice == 15 && session->live.empty() && !lanes_.Pinned(session->member)) {
      if (inside_ == session) inside_ = nullptr;
      lanes_.Leave(session->member);
    }
  }

  void Switch(Session* session) {
    if (inside_ != nullptr && lanes_.Pinned(inside_->member)) return;  // it keeps the lane
    if (inside_ != nullptr) lanes_.Exit(inside_->member);
    inside_ = session;
    ASSERT_EQ(lanes_.Enter(session->member), CUDA_SUCCESS);
  }

  bool IsLive(const Session& session, CUdeviceptr address) const {
    auto next = session.live.upper_bound(address);
    if (next == session.live.begin()) return false;
    --next;
    return address < next->first + next->second.first;
  }

  void Keep(Session* session) {
    const uint64_t size = lanes_.Look(kLane).parts.empty()
                              ? 0
                              : lanes_.Look(kLane).parts.back().address +
                                    lanes_.Look(kLane).parts.back().extent.bytes;
    if (size == 0) return;
    const CUdeviceptr address = session->base + random_() % (size / MiB) * MiB;
    const uint64_t bytes = std::min((1 + random_() % 4) * MiB, session->base + size - address);
    for (uint64_t at = 0; at < bytes; at += MiB) {
      if (IsLive(*session, address + at)) return;
    }
    const uint8_t value = static_cast<uint8_t>(1 + random_() % 250);
    for (uint64_t at = 0; at < bytes; at += MiB) recording_.At(address + at) = value;
    session->live[address] = {bytes, value};
    const CUresult result = lanes_.Keep(session->member, address, bytes);
    ASSERT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
    kept_ += result == CUDA_SUCCESS;
  }

  void Release(Session* session) {
    if (session->live.empty()) return;
    auto block = session->live.begin();
    std::advance(block, random_() % session->live.size());
    ASSERT_TRUE(lanes_.Release(session->member, block->first));
    session->live.erase(block);
  }

  void Check() {
    if (inside_ != nullptr) {
      for (const Piece& part : lanes_.Look(kLane).parts) {
        for (uint64_t at = 0; at < part.extent.bytes; at += MiB) {
          const CUdeviceptr address = inside_->base + part.address + at;
          if (!IsLive(*inside_, address)) recording_.At(address) = 255;
        }
      }
    }
    uint64_t sum = 0;
    for (const auto& entry : recording_.extents) sum += entry.second.bytes;
    ASSERT_EQ(sum, recording_.used_bytes);
    ASSERT_LE(sum, recording_.capacity_bytes);
    for (const Session& session : sessions_) {
      for (const auto& [address, block] : session.live) {
        for (uint64_t at = 0; at < block.first; at += MiB) {
          ASSERT_EQ(recording_.At(address + at), block.second)
              << "another session wrote a live block";
        }
      }
    }
  }

  Recording& recording_;
  LaneTable& lanes_;
  std::mt19937& random_;
  std::vector<Session> sessions_;
  Session* inside_ = nullptr;
  int kept_ = 0;
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
