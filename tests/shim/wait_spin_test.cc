#include "shim/wait_spin.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/harness/seed.h"

namespace shim {
namespace {

constexpr int64_t kWakeUpsUs = 60;  // what a sleep costs besides
constexpr int kWaits = 10'000;

// A machine on which a wait takes `work_us`, and longer when the waiting thread keeps the
// processor from those that it waits for.
struct Machine {
  int64_t work_us = 0;
  int64_t starved_us = 0;   // longer by so much during a long spin
  int disturbed_every = 0;  // long spins; 0: none is disturbed
};

// Runs the waits and counts those that spin long.
int LongSpins(const Machine& machine, int waits, WaitSpin* spin) {
  int spun = 0;
  for (int i = 0; i < waits; ++i) {
    const bool is_long = spin->NextUs() != ipc::limits::kSpinUs;
    spun += is_long;
    const int64_t us = machine.work_us + (is_long ? machine.starved_us : 0);
    const bool sleeps = us > int64_t{spin->NextUs()};
    spin->OnEnd({us + (sleeps ? kWakeUpsUs : 0),
                 is_long && machine.disturbed_every != 0 && spun % machine.disturbed_every == 0});
  }
  return spun;
}

TEST(WaitSpinTest, SpinsWhereASleepTakesLonger) {
  for (const int64_t work_us : {21, 50, 100, 139}) {
    WaitSpin spin;
    EXPECT_EQ(spin.NextUs(), ipc::limits::kSpinUs) << "nothing is known yet";
    EXPECT_GT(LongSpins({work_us}, kWaits, &spin), kWaits * 9 / 10) << work_us;
  }
}

TEST(WaitSpinTest, SleepsWhereASpinKeepsTheDeviceWaiting) {
  for (const int64_t work_us : {30, 100, 139}) {
    WaitSpin spin;
    EXPECT_LT(LongSpins({work_us, kWakeUpsUs + 10}, kWaits, &spin), kWaits / 10) << work_us;
  }
}

TEST(WaitSpinTest, LongWaitsGetNoLongSpin) {
  WaitSpin spin;
  EXPECT_EQ(LongSpins({WaitSpin::kLongSpinUs}, kWaits, &spin), 0);
}

TEST(WaitSpinTest, ShortWaitsTellNothing) {
  WaitSpin spin;
  EXPECT_EQ(LongSpins({ipc::limits::kSpinUs}, kWaits, &spin), 0);
  EXPECT_GT(LongSpins({50}, 100, &spin), 80) << "the first ones that tell decide";
}

TEST(WaitSpinTest, DisturbancesEndLongSpinsForLonger) {
  WaitSpin always;
  EXPECT_LT(LongSpins({50, 0, 1}, kWaits, &always), 20);
  WaitSpin rarely;
  EXPECT_GT(LongSpins({50, 0, 300}, kWaits, &rarely), kWaits * 3 / 4) << "one is soon forgiven";
}

TEST(WaitSpinTest, FollowsTheMachine) {
  WaitSpin spin;
  LongSpins({50}, kWaits, &spin);
  LongSpins({50, 500}, 200, &spin);  // other programs came
  EXPECT_LT(LongSpins({50, 500}, kWaits, &spin), kWaits / 10);
  LongSpins({50}, 200, &spin);  // and went
  EXPECT_GT(LongSpins({50}, kWaits, &spin), kWaits * 9 / 10);
  LongSpins({5000}, 200, &spin);  // the program's kernels grow
  EXPECT_LT(LongSpins({5000}, kWaits, &spin), 10);
}

// Whatever waits take, the thread loses little against the better way, known beforehand.
TEST(WaitSpinTest, LosesLittleAgainstTheBetterWay) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 100; ++round) {
    const int64_t work_us = 21 + static_cast<int64_t>(random() % 500);
    const int64_t starved_us = static_cast<int64_t>(random() % 200);
    WaitSpin spin;
    int64_t took_us = 0;
    for (int i = 0; i < kWaits; ++i) {
      const bool is_long = spin.NextUs() != ipc::limits::kSpinUs;
      const int64_t us = work_us + (is_long ? starved_us : 0);
      const int64_t all_us = us + (us > int64_t{spin.NextUs()} ? kWakeUpsUs : 0);
      took_us += all_us;
      spin.OnEnd({all_us, false});
    }
    const int64_t sleeping_us = work_us + kWakeUpsUs;
    EXPECT_LE(took_us, sleeping_us * kWaits * 115 / 100) << work_us << " " << starved_us;
  }
}

}  // namespace
}  // namespace shim
