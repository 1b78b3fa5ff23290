// Bounds that hold whoever shares a device: how long anybody waits, and by how much anybody is
// ahead of others who want as much. Random sessions in a closed loop, from a printed seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/harness/events.h"
#include "tests/harness/seed.h"
#include "tests/scheduler/machine.h"

namespace scheduler {
namespace {

constexpr int kRounds = harness::kSanitized ? 12 : 60;
constexpr int64_t kAllHereUs = 1'000'000;  // by then everybody has come
constexpr int64_t kEndUs = 6'000'000;

class ClosedLoopTest : public ::testing::TestWithParam<std::string> {
 protected:
  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  void Begin(int round) { random_.seed(seed_ + static_cast<uint64_t>(round)); }

  const uint64_t seed_ = harness::Seed();
  std::mt19937_64 random_;
};

struct Coming {
  int64_t at_us = 0;
  SessionArrived about;
  int64_t iteration_us = 0;
};

void RunAll(Machine* machine, std::vector<Coming> all, int64_t end_us) {
  std::sort(all.begin(), all.end(),
            [](const Coming& one, const Coming& other) { return one.at_us < other.at_us; });
  for (const Coming& coming : all) {
    machine->Run(coming.at_us);
    machine->Add(coming.about, coming.iteration_us);
  }
  machine->Run(end_us);
}

// Limits::starvation_us, then everybody who starves before it has one slice, and who runs comes to
// its boundary.
using WaitingTest = ClosedLoopTest;

TEST_P(WaitingTest, NobodyWaitsPastTheBound) {
  for (int round = 0; round < kRounds; ++round) {
    Begin(round);
    Machine machine(GetParam());
    Limits& limits = machine.state()->limits;
    limits.slice_us = Between(2'000, 20'000);
    limits.starvation_us = Between(100'000, 1'000'000);
    limits.lanes_max = static_cast<unsigned>(Between(1, 3));
    const int64_t sessions = Between(2, 12);
    int64_t longest_us = 0;
    std::vector<Coming> all;
    for (SessionId id = 1; id <= static_cast<SessionId>(sessions); ++id) {
      Coming coming = {Between(0, kAllHereUs), Job(id), Between(200, 20'000)};
      coming.about.user = static_cast<uint32_t>(Between(0, 2));
      coming.about.priority = static_cast<uint32_t>(Between(0, 3));
      coming.about.weight = Between(10, 400);
      coming.about.deadline_us = Between(0, 1) * Between(1'000, 100'000);
      coming.about.estimate.total_us = Between(0, 1) * Between(1'000, 1'000'000'000);
      longest_us = std::max(longest_us, coming.iteration_us);
      all.push_back(coming);
    }
    RunAll(&machine, all, kEndUs);
    ASSERT_LE(machine.longest_wait_us(),
              limits.starvation_us + sessions * (limits.slice_us + 2 * longest_us))
        << "round " << round << " of seed " << seed_;
    for (const Coming& coming : all) {
      ASSERT_GT(machine.busy_us(coming.about.session), 0) << "round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, WaitingTest,
                         ::testing::Values("srtf", "fair", "rr", "priority", "edf", "shares"),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

// Of those who always want, in time over weight: a slice, what is seen of it late, and an iteration
// of each. Twice that between two moments. fair: sessions of a lane; shares: users.
using FairnessTest = ClosedLoopTest;

TEST_P(FairnessTest, NobodyIsAheadByMoreThanTheBound) {
  const bool of_users = GetParam() == "shares";
  for (int round = 0; round < kRounds; ++round) {
    Begin(round);
    Machine machine(GetParam());
    Limits& limits = machine.state()->limits;
    limits.slice_us = Between(2'000, 20'000);
    limits.starvation_us = kUnlimited;  // whoever starves goes first, whatever is fair
    limits.lanes_max = of_users ? 16 : 1;
    std::map<uint64_t, int64_t> weights;  // of sessions or users
    const int64_t longest_us = Between(500, 20'000);
    std::vector<Coming> all;
    for (SessionId id = 1; id <= 8; ++id) {
      Coming coming = {Between(0, kAllHereUs), Job(id), Between(longest_us / 2, longest_us)};
      coming.about.user = of_users ? 1 + id % 3 : 0;
      const uint64_t of = of_users ? coming.about.user : id;
      if (weights.count(of) == 0) weights[of] = Between(50, 400);
      if (of_users) {
        machine.Tell(UserChanged{coming.about.user, weights[of]});
      } else {
        coming.about.weight = weights[of];
      }
      all.push_back(coming);
    }
    std::map<uint64_t, int64_t> before, after;  // time over weight
    const auto measure = [&](std::map<uint64_t, int64_t>* times) {
      for (const Coming& coming : all) {
        const uint64_t of = of_users ? coming.about.user : coming.about.session;
        (*times)[of] += machine.busy_us(coming.about.session) * 100 / weights[of];
      }
    };
    RunAll(&machine, all, kAllHereUs);
    measure(&before);
    machine.Run(kEndUs);
    measure(&after);
    int64_t least_us = kUnlimited, most_us = 0, least_weight = kUnlimited;
    for (const std::pair<const uint64_t, int64_t>& entry : weights) {
      const int64_t served_us = after[entry.first] - before[entry.first];
      least_us = std::min(least_us, served_us);
      most_us = std::max(most_us, served_us);
      least_weight = std::min(least_weight, entry.second);
    }
    const int64_t bound_us =
        limits.slice_us + (limits.slice_us + 2 * longest_us) * 100 / least_weight;
    ASSERT_LE(most_us - least_us, 2 * bound_us) << "round " << round << " of seed " << seed_;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, FairnessTest, ::testing::Values("fair", "shares"),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace
}  // namespace scheduler
