#include "shim/arena/fences.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/harness/seed.h"
#include "tests/shim/arena/random.h"

namespace shim_arena_test {
namespace {

using shim::arena::Fences;
using shim::arena::kAnyStream;
using shim::arena::Stamp;

TEST(Fences, OneStreamSendsNothing) {
  Fences fences;
  for (uint64_t call = 1; call < 100; ++call) {
    EXPECT_FALSE(fences.NeedsJoin(5));
    fences.OnWork(5, call);
    EXPECT_FALSE(fences.OnReuse(fences.OnFree(kAnyStream), kAnyStream));
  }
}

TEST(Fences, SeveralStreamsSendOneJoinForAllFreesBefore) {
  Fences fences;
  fences.OnWork(0, 1);
  fences.OnWork(7, 2);
  const Stamp first = fences.OnFree(kAnyStream), second = fences.OnFree(kAnyStream);
  EXPECT_TRUE(fences.OnReuse(first, kAnyStream));
  fences.OnJoin();
  EXPECT_FALSE(fences.OnReuse(second, kAnyStream));
  fences.OnWork(7, 3);
  EXPECT_FALSE(fences.OnReuse(second, kAnyStream));
}

TEST(Fences, AJoinIsNotSentTwiceForTheSameFree) {
  Fences fences;
  fences.OnWork(0, 1);
  fences.OnWork(7, 2);
  const Stamp stamp = fences.OnFree(kAnyStream);
  EXPECT_TRUE(fences.OnReuse(stamp, kAnyStream));
  fences.OnJoin();
  fences.OnWork(7, 3);
  fences.OnWork(8, 4);
  EXPECT_FALSE(fences.OnReuse(stamp, kAnyStream)) << "the join came after the free";
  EXPECT_TRUE(fences.OnReuse(fences.OnFree(kAnyStream), kAnyStream));
}

TEST(Fences, ASecondStreamJoinsWhenItComes) {
  Fences fences;
  fences.OnWork(0, 1);
  EXPECT_FALSE(fences.OnReuse(fences.OnFree(kAnyStream), kAnyStream));
  EXPECT_FALSE(fences.NeedsJoin(0));
  EXPECT_TRUE(fences.NeedsJoin(7));
  fences.OnJoin();
  EXPECT_FALSE(fences.NeedsJoin(7));
}

TEST(Fences, StreamOrderedReuseIsImmediateOnTheSameStreamOnly) {
  Fences fences;
  fences.OnWork(3, 1);
  fences.OnWork(4, 2);
  const Stamp stamp = fences.OnFree(3);
  EXPECT_FALSE(fences.OnReuse(stamp, 3));
  EXPECT_TRUE(fences.OnReuse(stamp, 4));
}

// Free blocks that become one were freed in the order of several streams: in nobody's order alone.
TEST(Fences, WhatTwoStreamsFreedIsFreedInNeithersOrder) {
  Fences fences;
  fences.OnWork(3, 1);
  fences.OnWork(4, 2);
  const Stamp one = fences.OnFree(3), other = fences.OnFree(4);
  EXPECT_EQ(Merge(one, other).slot, kAnyStream);
  EXPECT_TRUE(fences.OnReuse(Merge(one, other), 3));
  EXPECT_TRUE(fences.OnReuse(Merge(one, other), 4));
  EXPECT_FALSE(fences.OnReuse(Merge(one, one), 3)) << "both in the order of stream 3";
  EXPECT_EQ(Merge(one, Stamp()), one) << "nothing ever used the other";
  EXPECT_EQ(Merge(Stamp(), one), one);
  fences.OnJoin();
  const Stamp later = fences.OnFree(3);
  EXPECT_EQ(Merge(one, later).epoch, later.epoch);
  EXPECT_EQ(Merge(later, one).epoch, later.epoch);
}

TEST(Fences, WaitingForTheDeviceIsAJoin) {
  Fences fences;
  fences.OnWork(3, 1);
  fences.OnWork(4, 2);
  const Stamp stamp = fences.OnFree(kAnyStream);
  const uint64_t look = fences.BeforeWait();
  ASSERT_TRUE(fences.Tells(look, kAnyStream));
  fences.AfterWait(look, kAnyStream);
  EXPECT_FALSE(fences.OnReuse(stamp, kAnyStream));
}

TEST(Fences, WaitingForOneStreamOfSeveralIsNone) {
  Fences fences;
  fences.OnWork(3, 1);
  fences.OnWork(4, 2);
  const Stamp stamp = fences.OnFree(kAnyStream);
  EXPECT_FALSE(fences.Tells(fences.BeforeWait(), 3));
  fences.AfterWait(fences.BeforeWait(), 3);
  EXPECT_TRUE(fences.OnReuse(stamp, kAnyStream));
}

TEST(Fences, WorkOfOthersDuringTheWaitUndoesIt) {
  Fences fences;
  fences.OnWork(3, 1);
  const uint64_t look = fences.BeforeWait();
  fences.OnWork(4, 2);
  const Stamp stamp = fences.OnFree(kAnyStream);
  fences.AfterWait(look, kAnyStream);
  EXPECT_TRUE(fences.OnReuse(stamp, kAnyStream));
}

// The plain way: every call has a clock of what is before it (its own stream's calls, and all of
// them at a join). A call that uses memory again must be after every call that used it before.
class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {}

  void Run(int events) {
    for (int i = 0; i < events && !testing::Test::HasFatalFailure(); ++i) {
      switch (random_.In(0, 9)) {
        case 0:
          Free();
          break;
        case 1:
          Allocate();
          break;
        case 2:
          if (random_.OneIn(4)) WaitForDevice();
          break;
        default:
          Use();
      }
    }
  }
  int joins() const { return joins_; }
  uint64_t Streams() const { return streams_; }
  void SetStreams(uint64_t streams) { streams_ = streams; }

 private:
  struct Block {
    bool live = false;
    Stamp stamp;
    int32_t order = kAnyStream;         // of the stream-ordered allocation
    std::map<int32_t, uint64_t> users;  // stream -> last call, of its former lives
    std::map<int32_t, uint64_t> mine;   // of this life
  };

  void Join() {
    fences_.OnJoin();
    ++joins_;
    for (int32_t to = 0; to < kStreams; ++to) {
      for (int32_t from = 0; from < kStreams; ++from) after_[to][from] = last_[from];
    }
  }
  void WaitForDevice() {
    const uint64_t look = fences_.BeforeWait();
    fences_.AfterWait(look, kAnyStream);
    for (int32_t to = 0; to < kStreams; ++to) {
      for (int32_t from = 0; from < kStreams; ++from) after_[to][from] = last_[from];
    }
  }
  int32_t AnyStream() { return static_cast<int32_t>(random_.In(0, streams_ - 1)); }
  Block& AnyBlock() { return blocks_[random_.In(0, kBlocks - 1)]; }

  void Use() {
    Block& block = AnyBlock();
    if (!block.live) return;
    // A program uses stream-ordered memory in its stream's order.
    const int32_t stream = block.order == kAnyStream ? AnyStream() : block.order;
    if (fences_.NeedsJoin(stream)) Join();
    fences_.OnWork(stream, ++calls_);
    last_[stream] = calls_;
    after_[stream][stream] = calls_;
    for (const std::pair<const int32_t, uint64_t>& user : block.users) {
      ASSERT_GE(after_[stream][user.first], user.second)
          << "stream " << stream << " uses memory that stream " << user.first << " still uses";
    }
    block.mine[stream] = calls_;
  }
  void Free() {
    Block& block = AnyBlock();
    if (!block.live) return;
    const bool one = block.mine.size() == 1 && random_.OneIn(2);
    block.stamp = fences_.OnFree(one ? block.mine.begin()->first : kAnyStream);
    block.live = false;
    for (const std::pair<const int32_t, uint64_t>& user : block.mine)
      block.users[user.first] = user.second;
    block.mine.clear();
  }
  void Allocate() {
    Block& block = AnyBlock();
    if (block.live) return;
    block.order = random_.OneIn(2) ? kAnyStream : AnyStream();
    if (block.order != kAnyStream && fences_.NeedsJoin(block.order)) Join();
    if (fences_.OnReuse(block.stamp, block.order)) Join();
    block.live = true;
  }

  static constexpr int32_t kStreams = 4;
  static constexpr uint64_t kBlocks = 6;
  Random random_;
  Fences fences_;
  Block blocks_[kBlocks];
  uint64_t streams_ = kStreams;
  uint64_t calls_ = 0;
  uint64_t last_[kStreams] = {};
  uint64_t after_[kStreams][kStreams] = {};
  int joins_ = 0;
};

TEST(Fences, RandomProgramsNeverUseMemoryTooEarly) {
  const uint64_t seed = harness::Seed();
  for (uint64_t job = 0; job < 300; ++job) {
    Model model(seed + job);
    model.SetStreams(1 + job % 4);
    model.Run(2000);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << " job " << job;
    if (model.Streams() == 1) {
      ASSERT_EQ(model.joins(), 0);
    }
  }
}

}  // namespace
}  // namespace shim_arena_test
