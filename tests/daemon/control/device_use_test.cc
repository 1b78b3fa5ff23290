// The share of time in which a device had work, against a count of every microsecond.
#include "daemon/control/device_use.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "tests/harness/seed.h"

namespace control {
namespace {

constexpr int64_t kBegin = 1'000'000;

class DeviceUseTest : public ::testing::Test {
 protected:
  scheduler::Session* Add(uint64_t id, uint32_t device) {
    scheduler::Session& session = state_.sessions[id];
    session.id = id;
    session.about.device = device;
    session.phase = scheduler::Phase::kAdmitted;
    return &session;
  }
  static void Set(scheduler::Session* session, bool works) {
    session->granted = session->runnable = works;
  }

  scheduler::State state_;
  DeviceUse use_;
};

TEST_F(DeviceUseTest, AWindowThatHasPassedIsToldAndTheOneThatRunsIsNot) {
  scheduler::Session* const session = Add(1, 0);
  use_.Pass(state_, kBegin);
  Set(session, true);
  use_.Pass(state_, kBegin + DeviceUse::kWindowUs / 4);
  EXPECT_EQ(use_.PercentOf(0), 0u);
  Set(session, false);
  use_.Pass(state_, kBegin + DeviceUse::kWindowUs);
  EXPECT_EQ(use_.PercentOf(0), 25u);
  EXPECT_EQ(use_.PercentOf(1), 0u);
  EXPECT_EQ(use_.PercentOf(~0u), 0u) << "there is no such device";
}

TEST_F(DeviceUseTest, TwoSessionsAtOnceAreOneDevicesTime) {
  use_.Pass(state_, kBegin);
  Set(Add(1, 0), true);
  Set(Add(2, 0), true);
  use_.Pass(state_, kBegin + DeviceUse::kWindowUs);
  EXPECT_EQ(use_.PercentOf(0), 100u);
}

TEST_F(DeviceUseTest, ASessionThatWaitsForMemoryDoesNotUseTheDevice) {
  use_.Pass(state_, kBegin);
  scheduler::Session* const session = Add(1, 0);
  Set(session, true);
  session->need = scheduler::Need::kLane;
  use_.Pass(state_, kBegin + DeviceUse::kWindowUs);
  EXPECT_EQ(use_.PercentOf(0), 0u);
}

// A day without an event is as quick as a window.
TEST_F(DeviceUseTest, AfterALongTimeTheLastWindowIsTold) {
  use_.Pass(state_, kBegin);
  scheduler::Session* const session = Add(1, 0);
  Set(session, true);
  const int64_t later = kBegin + 86'400'000'000;
  use_.Pass(state_, later);
  EXPECT_EQ(use_.PercentOf(0), 100u);
  Set(session, false);
  use_.Pass(state_, later + 86'400'000'000);
  EXPECT_EQ(use_.PercentOf(0), 0u);
}

TEST_F(DeviceUseTest, RandomTimesAgreeWithACount) {
  std::mt19937 random(harness::Seed());
  scheduler::Session* const session = Add(1, 3);
  constexpr int64_t kUnit = 1000;
  std::deque<bool> units;  // since kBegin
  use_.Pass(state_, kBegin);
  int64_t now = kBegin;
  for (int i = 0; i < 4000; ++i) {
    Set(session, random() % 2 == 0);
    const int64_t passed = random() % 50 == 0 ? static_cast<int64_t>(random() % 3000)
                                              : static_cast<int64_t>(random() % 200);
    units.insert(units.end(), static_cast<size_t>(passed), session->runnable);
    use_.Pass(state_, now += passed * kUnit);
    const size_t window = static_cast<size_t>(DeviceUse::kWindowUs / kUnit);
    const size_t whole = units.size() / window;
    if (whole == 0) continue;
    const auto begin = units.begin() + static_cast<std::ptrdiff_t>((whole - 1) * window);
    const auto busy = std::count(begin, begin + static_cast<std::ptrdiff_t>(window), true);
    ASSERT_EQ(use_.PercentOf(3), static_cast<size_t>(busy) * 100 / window) << "after step " << i;
  }
}

}  // namespace
}  // namespace control
