#include "daemon/control/iteration_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

namespace control {
namespace {

class WatchTest : public ::testing::Test {
 protected:
  void Sample(int64_t now_us) { sampler_.Sample(1, 7, *times_, now_us, &journal_); }
  // `count` iterations of `took_us`, one after the other, until `end_us`.
  void Iterate(int count, uint64_t took_us, uint64_t end_us) {
    for (int i = count - 1; i >= 0; --i) {
      ipc::CountIteration(times_.get(), end_us - static_cast<uint64_t>(i) * took_us, took_us);
    }
  }

  const std::unique_ptr<ipc::IterationTimes> times_ = std::make_unique<ipc::IterationTimes>();
  Journal journal_;
  IterationSampler sampler_;
};

TEST_F(WatchTest, AWaitThatHasBegunAndEndedIsInTheJournal) {
  Sample(0);
  ipc::Progress progress;
  progress.wait = ipc::WaitState::kPaused;
  progress.wait_since_us = 1'000;
  sampler_.SampleWait(1, 7, progress, 2'000, &journal_);
  sampler_.SampleWait(1, 7, progress, 3'000, &journal_);
  progress.wait = ipc::WaitState::kNothing;
  sampler_.SampleWait(1, 7, progress, 5'000, &journal_);
  const std::vector<Event> events = journal_.After(0, 10);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, EventKind::kWaitBegin);
  EXPECT_EQ(events[0].at_us, 1'000);
  EXPECT_EQ(events[1].kind, EventKind::kWaitEnd);
  EXPECT_EQ(events[1].took_us, 4'000);
}

TEST_F(WatchTest, FiguresSpeakOfTheLastSeconds) {
  Sample(0);
  for (int64_t second = 1; second <= 60; ++second) {
    const uint64_t took = second <= 30 ? 100'000 : 10'000;
    Iterate(static_cast<int>(1'000'000 / took), took, static_cast<uint64_t>(second) * 1'000'000);
    Sample(second * 1'000'000);
  }
  const Figures figures = sampler_.Of(1, *times_, 60'000'000);
  EXPECT_EQ(figures.iterations, 30u * 10 + 30u * 100);
  EXPECT_NEAR(figures.per_second, 100, 1);
  EXPECT_NEAR(static_cast<double>(figures.p50_us), 10'000, 700);
  EXPECT_NEAR(static_cast<double>(figures.p99_us), 10'000, 700);
}

TEST_F(WatchTest, QuantilesAreWithinABucket) {
  const uint64_t seed = 20240101;
  std::mt19937_64 random(seed);
  std::vector<uint64_t> all;
  TimeCounts counts = {};
  for (int i = 0; i < 20'000; ++i) {
    all.push_back(static_cast<uint64_t>(std::exp(std::normal_distribution<double>(10, 1)(random))));
    ++counts[ipc::BucketOf(all.back())];
  }
  std::sort(all.begin(), all.end());
  for (const double part : {0.1, 0.5, 0.9, 0.99}) {
    const double exact = static_cast<double>(all[static_cast<size_t>(part * 20'000)]);
    EXPECT_NEAR(static_cast<double>(QuantileUs(counts, part)), exact, exact / 8) << "seed " << seed;
  }
  EXPECT_EQ(QuantileUs({}, 0.5), 0u);
}

TEST_F(WatchTest, AQuantileAtTheEndOfABucketIsInIt) {
  TimeCounts counts = {};
  counts[ipc::BucketOf(1)] = 1;
  counts[ipc::BucketOf(100'000)] = 1;
  EXPECT_EQ(QuantileUs(counts, 0.5), 2u);  // where the bucket of 1 ends
  EXPECT_GE(QuantileUs(counts, 0.51), 90'000u);
}

TEST_F(WatchTest, FewIterationsAreToldOneByOneAndManyTogether) {
  Sample(0);
  Iterate(3, 100'000, 400'000);
  Sample(500'000);
  Iterate(1000, 100, 900'000);  // after a wait
  Sample(1'000'000);
  const std::vector<Event> events = journal_.After(0, 100);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].at_us, 200'000);
  EXPECT_EQ(events[0].took_us, 100'000);
  EXPECT_EQ(events[3].count, 1000u);
  EXPECT_EQ(events[3].at_us, 900'000);
  EXPECT_EQ(events[3].took_us, 100'000);
}

TEST_F(WatchTest, IterationsBeforeTheFirstLookAreNotTold) {
  Iterate(3, 100'000, 400'000);
  Sample(500'000);
  EXPECT_TRUE(journal_.After(0, 100).empty());
  Iterate(1, 50'000, 600'000);
  Sample(700'000);
  const std::vector<Event> events = journal_.After(0, 100);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].at_us, 600'000);
  EXPECT_EQ(events[0].took_us, 50'000);
}

// Whatever a client writes into its page, the journal's times stay in order and in the past.
TEST_F(WatchTest, WordsOfALiarAreBounded) {
  const uint64_t seed = 7;
  std::mt19937_64 random(seed);
  int64_t now_us = 0;
  Sample(now_us);
  for (int round = 0; round < 2000; ++round) {
    times_->count.store(random() >> (random() % 64));
    times_->total_us.store(random());
    for (size_t i = 0; i < ipc::kRecentIterations; ++i) {
      times_->recent[i].end_us.store(random() >> (random() % 64));
      times_->recent[i].took_us.store(random() >> (random() % 64));
    }
    times_->times[random() % ipc::kTimeBuckets].store(static_cast<uint32_t>(random()));
    now_us += static_cast<int64_t>(random() % 1'000'000);
    Sample(now_us);
    (void)sampler_.Of(1, *times_, now_us);
    int64_t before = 0;
    for (const Event& event :
         journal_.After(journal_.last() - std::min<uint64_t>(journal_.last(), 8), 8)) {
      ASSERT_LE(event.at_us, now_us) << "seed " << seed;
      ASSERT_GE(event.took_us, 0);
      ASSERT_GE(event.at_us - event.took_us, before);
      before = event.at_us;
    }
  }
}

}  // namespace
}  // namespace control
