// Commands, answers and rings reach a session's thread where it waits.
#include "daemon/worker/parking.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "ipc/futex.h"

namespace worker {
namespace {

namespace wire = ipc::control;

constexpr int64_t kLongUs = 20'000'000;  // a wait that only a ring may end

class ParkingTest : public ::testing::Test {
 protected:
  // Waits for `over` alone.
  void Until(const std::function<bool()>& over) {
    parking_.Until({.over = over, .nap_us = [] { return kLongUs; }, .in_between = {}});
  }

  std::unique_ptr<ipc::SessionPage> page_ = std::make_unique<ipc::SessionPage>();
  ipc::Progress progress_{};
  std::atomic<bool> device_is_done_{true};
  Parking parking_{page_.get(), &progress_, [this] { return device_is_done_.load(); }};
};

TEST_F(ParkingTest, CommandsWaitForTheDevice) {
  int ran = 0;
  device_is_done_ = false;
  parking_.Post([&] { ++ran; });
  EXPECT_TRUE(parking_.IsPoked());
  EXPECT_FALSE(parking_.RunCommands());
  EXPECT_EQ(ran, 0);
  device_is_done_ = true;
  EXPECT_TRUE(parking_.RunCommands());
  EXPECT_TRUE(parking_.RunCommands());
  EXPECT_EQ(ran, 1);
}

TEST_F(ParkingTest, ACommandLeftForABusyDeviceIsTriedAgainUnrung) {
  bool ran = false;
  device_is_done_ = false;
  parking_.Post([&] { ran = true; });
  int looks = 0;
  Until([&] {
    if (++looks == 5) device_is_done_ = true;
    return ran;
  });
  EXPECT_TRUE(ran);
}

TEST_F(ParkingTest, ARingOfAnotherThreadEndsTheSleep) {
  std::atomic<bool> over{false};
  std::thread ringer([&] {
    over = true;
    parking_.Ring();
  });
  Until([&] { return over.load(); });
  ringer.join();
}

TEST_F(ParkingTest, ARingBetweenTheLookAndTheSleepIsNotLost) {
  int looks = 0;
  Until([&] {
    if (++looks == 2) parking_.Ring();  // the last look before the sleep
    return looks > 2;
  });
  EXPECT_EQ(looks, 3);
}

TEST_F(ParkingTest, AnAnswerComesOnceAndToItsKindOfRequest) {
  parking_.Expect();
  EXPECT_FALSE(parking_.HasAnswer());
  parking_.Keep(wire::MemoryAnswer{1, 7});
  EXPECT_TRUE(parking_.HasAnswer());
  EXPECT_FALSE(parking_.Take<wire::AssignLane>().has_value());
  const std::optional<wire::MemoryAnswer> answer = parking_.Take<wire::MemoryAnswer>();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->result, 7u);
  EXPECT_FALSE(parking_.Take<wire::MemoryAnswer>().has_value());
}

// The daemon that answered is gone, and the session has asked the next one.
TEST_F(ParkingTest, AnAnswerFromBeforeTheRequestIsVoid) {
  parking_.Expect();
  parking_.Keep(wire::MemoryAnswer{1, 0});
  parking_.Expect();
  EXPECT_FALSE(parking_.HasAnswer());
  EXPECT_FALSE(parking_.Take<wire::MemoryAnswer>().has_value());
}

// It would count as memory that the session is about to take, and keep it from going to the host.
TEST_F(ParkingTest, AnAnswerThatNoRequestExpectsIsDropped) {
  parking_.Keep(wire::MemoryAnswer{1, 0});
  EXPECT_FALSE(parking_.HasAnswer());
  parking_.Expect();
  parking_.ExpectNone();
  parking_.Keep(wire::MemoryAnswer{1, 0});
  EXPECT_FALSE(parking_.HasAnswer());
}

TEST_F(ParkingTest, WatchersSeeTheReasonAsLongAsItLasts) {
  {
    const Parking::Waiting waiting(&parking_, ipc::WaitState::kMemory);
    EXPECT_EQ(progress_.wait.load(), ipc::WaitState::kMemory);
  }
  EXPECT_EQ(progress_.wait.load(), ipc::WaitState::kNothing);
}

}  // namespace
}  // namespace worker
