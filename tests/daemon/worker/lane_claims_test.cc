#include "daemon/worker/lane_claims.h"

#include <gtest/gtest.h>

namespace worker {
namespace {

using ipc::control::OwnerKind;

TEST(LaneClaimsTest, TheFirstToEnterTakesTheClaim) {
  LaneClaim claim;
  EXPECT_TRUE(claim.Take());
  EXPECT_FALSE(claim.Take()) << "once for each keeper";
  EXPECT_TRUE(claim.Enter());
  EXPECT_TRUE(claim.Enter()) << "it is inside already";
  claim.Exit();
  EXPECT_TRUE(claim.Enter()) << "no other keeper came";
}

TEST(LaneClaimsTest, AWorkerSpeaksForTheLanesThatItIsInside) {
  LaneClaims claims;
  const std::shared_ptr<LaneClaim> inside = claims.Of(1), left = claims.Of(2);
  for (const std::shared_ptr<LaneClaim>& claim : {inside, left}) {
    claim->Take();
    claim->Enter();
  }
  left->Exit();
  (void)claims.Of(3);
  EXPECT_EQ(claims.OnNewKeeper(), std::set<uint64_t>{1});
  EXPECT_FALSE(inside->Take()) << "the keeper is told what the worker has";
  EXPECT_TRUE(left->Take());
}

TEST(LaneClaimsTest, WhoEntersWhileAKeeperComesLooksAgain) {
  LaneClaim claim;
  EXPECT_TRUE(claim.Take());
  EXPECT_FALSE(claim.OnNewKeeper()) << "what the session saw was an earlier keeper's";
  EXPECT_FALSE(claim.Enter());
  EXPECT_TRUE(claim.Take());
  EXPECT_TRUE(claim.Enter());
}

TEST(LaneClaimsTest, AClaimIsTheSameForAllThatHaveTheLane) {
  LaneClaims claims;
  const std::shared_ptr<LaneClaim> claim = claims.Of(1);
  EXPECT_EQ(claims.Of(1), claim);
  EXPECT_NE(claims.Of(2), claim);
}

TEST(LaneClaimsTest, WhatOneSessionHasAloneIsItsWorkers) {
  EXPECT_TRUE(SpeaksFor({OwnerKind::kSession, 1}, {}));
  EXPECT_TRUE(SpeaksFor({OwnerKind::kLane, ipc::control::OwnLaneOf(1)}, {}));
  EXPECT_FALSE(SpeaksFor({OwnerKind::kLane, 1}, {2}));
  EXPECT_TRUE(SpeaksFor({OwnerKind::kLane, 1}, {1}));
}

}  // namespace
}  // namespace worker
