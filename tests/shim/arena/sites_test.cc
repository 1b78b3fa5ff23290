#include "shim/arena/sites.h"

#include <gtest/gtest.h>

#include <vector>

namespace shim_arena_test {
namespace {

using shim::arena::Sites;

struct Allocation {
  uint64_t bytes;
  uint64_t site;
  bool dies;
};

// One iteration as the client runs it; what was predicted, and how often the call site was asked.
struct Outcome {
  std::vector<Sites::Class> predicted;
  int hashed = 0;
};

Outcome Iterate(Sites* sites, const std::vector<Allocation>& iteration) {
  Outcome outcome;
  for (const Allocation& allocation : iteration) {
    Sites::Class predicted = sites->Ask(allocation.bytes);
    uint64_t site = Sites::kNoSite;
    if (predicted == Sites::Class::kUndecided) {
      ++outcome.hashed;
      site = allocation.site;
      predicted = sites->AskSite(allocation.bytes, site);
    }
    outcome.predicted.push_back(predicted);
    const Sites::Birth birth =
        sites->OnAllocate(allocation.bytes, site, predicted == Sites::Class::kEphemeral);
    if (allocation.dies) sites->OnFree(birth);
  }
  sites->OnBoundary(sites->next());
  return outcome;
}

constexpr Sites::Class kPersistent = Sites::Class::kPersistent;
constexpr Sites::Class kEphemeral = Sites::Class::kEphemeral;

TEST(Sites, TwoEqualRoundsDecide) {
  Sites sites;
  const std::vector<Allocation> step = {{100, 1, true}, {200, 2, false}, {100, 3, true}};
  EXPECT_EQ(Iterate(&sites, step).predicted[0], kPersistent);
  Iterate(&sites, step);
  const Outcome third = Iterate(&sites, step);
  EXPECT_EQ(third.predicted, (std::vector{kEphemeral, kPersistent, kEphemeral}));
  EXPECT_EQ(third.hashed, 0);
  EXPECT_EQ(sites.wrong(), 0u);
}

// A shifted iteration is known by its call sites: where ordinal and size do not decide.
TEST(Sites, TheCallSiteDecidesWhereOrdinalAndSizeDoNot) {
  Sites sites;
  std::vector<Allocation> step = {{100, 1, true}, {200, 2, true}, {300, 3, false}};
  for (int i = 0; i < 3; ++i) Iterate(&sites, step);
  step.insert(step.begin(), {777, 9, false});
  const Outcome shifted = Iterate(&sites, step);
  EXPECT_EQ(shifted.hashed, 4);
  EXPECT_EQ(shifted.predicted, (std::vector{kPersistent, kEphemeral, kEphemeral, kPersistent}));
}

TEST(Sites, AWrongGuessMustProveItselfForLonger) {
  Sites sites;
  const std::vector<Allocation> step = {{100, 1, true}};
  for (int i = 0; i < 3; ++i) Iterate(&sites, step);
  EXPECT_EQ(Iterate(&sites, {{100, 1, false}}).predicted[0], kEphemeral);
  EXPECT_EQ(sites.wrong(), 1u);
  for (int i = 0; i < Sites::kPenalty; ++i) {
    EXPECT_EQ(Iterate(&sites, step).predicted[0], kPersistent) << i;
  }
  EXPECT_EQ(Iterate(&sites, step).predicted[0], kEphemeral);
}

TEST(Sites, OneSurvivorOfASiteMakesItUndecided) {
  Sites sites;
  // Ten at a time from one call site, in varying number, so that ordinals do not help.
  std::vector<Allocation> step(10, {64, 5, true});
  step.push_back({64, 5, false});
  for (uint64_t i = 0; i < 6; ++i) {
    std::vector<Allocation> shifted(i, Allocation{1000 + i, 100 + i, false});
    shifted.insert(shifted.end(), step.begin(), step.end());
    Iterate(&sites, shifted);
  }
  EXPECT_EQ(sites.wrong(), 0u);
}

TEST(Sites, LosingTheIterationsTeachesNothing) {
  Sites sites;
  const Sites::Birth birth = sites.OnAllocate(100, Sites::kNoSite, true);
  EXPECT_EQ(sites.Outlived(sites.next()).size(), 1u);
  sites.OnLost();
  EXPECT_FALSE(sites.IsYoung(birth));
  EXPECT_EQ(sites.next(), sites.first());
  EXPECT_EQ(sites.Ask(100), Sites::Class::kUndecided);
}

// A program allocates, and only then sends the first operation of its next iteration: what it
// allocated belongs to that one.
TEST(Sites, WhatIsBornBeforeTheFirstOperationBelongsToIt) {
  Sites sites;
  Sites::Birth early = sites.OnAllocate(100, 1, false);
  for (int i = 0; i < 5; ++i) {
    const Sites::Birth late = sites.OnAllocate(200, 2, false);
    const bool is_late = i >= 3;
    EXPECT_EQ(sites.Ask(100) == kEphemeral, is_late) << i;
    const Sites::Birth next = sites.next();
    sites.OnFree(early);
    sites.OnFree(late);
    early = sites.OnAllocate(100, 1, is_late);
    sites.OnBoundary(next);
    EXPECT_TRUE(sites.IsYoung(early));
  }
  EXPECT_EQ(sites.wrong(), 0u);
}

TEST(Sites, SteadyStateAsksForNoCallSites) {
  Sites sites;
  std::vector<Allocation> train, validate;
  for (uint64_t i = 0; i < 500; ++i) train.push_back({512 * (i % 17 + 1), i, i % 9 != 0});
  for (uint64_t i = 0; i < 100; ++i) validate.push_back({256 * (i % 5 + 1), 1000 + i, true});
  int hashed = 0, all = 0;
  for (int i = 0; i < 100; ++i) {
    const bool is_validation = i % 10 == 9;
    const Outcome outcome = Iterate(&sites, is_validation ? validate : train);
    if (i < 30) continue;
    hashed += outcome.hashed;
    all += static_cast<int>(outcome.predicted.size());
  }
  EXPECT_LT(hashed * 20, all);
  EXPECT_EQ(sites.wrong(), 0u);
}

TEST(Sites, WhatDiedInItsIterationDidNotOutliveIt) {
  Sites sites;
  const Sites::Birth dies = sites.OnAllocate(64, Sites::kNoSite, true);
  const Sites::Birth lives = sites.OnAllocate(64, Sites::kNoSite, true);
  sites.OnAllocate(64, Sites::kNoSite, false);
  sites.OnFree(dies);
  EXPECT_EQ(sites.Outlived(sites.next()), std::vector<Sites::Birth>{lives});
}

}  // namespace
}  // namespace shim_arena_test
