// Which bodies are known, which of several is followed, and which goes when there is no more room.
#include "shim/iterations/bodies.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace shim::iterations {
namespace {

// One operation that begins like all bodies of these tests, and `count` more that are the body's.
class BodiesTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kStart = 7;

  int Learn(uint32_t number, uint64_t count = 3) {
    const uint64_t begin = history_.size();
    Push(kStart);
    for (uint64_t i = 1; i < count; ++i) Push(1000 * number + static_cast<uint32_t>(i));
    return bodies_.Learn(history_, begin, count);
  }
  uint64_t Prefix() const { return History::Extend(0, kStart); }

  Bodies bodies_;

 private:
  void Push(uint32_t identity) {
    Op op;
    op.identity = identity;
    history_.Push(op);
  }

  History history_;
};

TEST_F(BodiesTest, WhatIsKnownIsNotLearnedAgain) {
  const int first = Learn(1);
  EXPECT_NE(Learn(2), first);
  EXPECT_EQ(Learn(1), first);
  EXPECT_EQ(bodies_.count(), 2u);
  EXPECT_EQ(bodies_.made(), 2u);
}

TEST_F(BodiesTest, OfBodiesThatBeginAlikeTheMostUsedIsFollowed) {
  const int seldom = Learn(1), often = Learn(2), never = Learn(3);
  bodies_.Use(often);
  bodies_.Use(often);
  bodies_.Use(seldom);
  EXPECT_EQ(bodies_.Starting(kStart), often);
  EXPECT_EQ(bodies_.WithPrefix(1, Prefix()), often);
  for (int i = 0; i < 3; ++i) bodies_.Use(never);
  EXPECT_EQ(bodies_.Starting(kStart), never);
  EXPECT_EQ(bodies_.WithPrefix(1, Prefix()), never);
}

TEST_F(BodiesTest, TheBodyThatIsUnusedForLongestGoes) {
  uint32_t ids[Bodies::kMax] = {};
  for (uint32_t i = 0; i < Bodies::kMax; ++i) ids[i] = bodies_.at(Learn(i)).id;
  const int kept = 0, gone = 1;
  bodies_.Use(kept);
  const uint32_t kept_id = ids[kept];
  EXPECT_EQ(Learn(Bodies::kMax), gone) << "the new body has the place of the one that went";
  EXPECT_EQ(bodies_.count(), Bodies::kMax);
  EXPECT_EQ(bodies_.at(kept).id, kept_id);
  EXPECT_EQ(bodies_.at(gone).id, Bodies::kMax + 1) << "no number comes twice";
}

TEST_F(BodiesTest, LongBodiesMakeRoomAsWell) {
  const uint64_t longest = Bodies::kOpsMax / 4;
  for (uint32_t i = 0; i < 5; ++i) EXPECT_NE(Learn(i, longest), Bodies::kNone);
  EXPECT_EQ(bodies_.count(), 4u);
  EXPECT_EQ(Learn(9, longest + 1), Bodies::kNone);
  EXPECT_EQ(bodies_.count(), 4u);
}

}  // namespace
}  // namespace shim::iterations
