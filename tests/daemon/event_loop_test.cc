// The loop where the system has no room for one more descriptor to be watched.
#include "daemon/common/event_loop.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "ipc/unique_fd.h"

namespace common {
namespace {

class EventLoopTest : public ::testing::Test {
 protected:
  EventLoopTest() { failure_ = ENOSPC; }
  static int Control(int epoll, int operation, int fd, epoll_event* event) {
    if (operation != EPOLL_CTL_ADD || failure_ == 0) return epoll_ctl(epoll, operation, fd, event);
    ++failures_;
    errno = failure_;
    return -1;
  }
  void Signal() {
    const uint64_t one = 1;
    ASSERT_EQ(write(event_.get(), &one, sizeof one), ssize_t{sizeof one});
  }
  // Reads as handlers do. Without anything to read it would wait for ever.
  void Count() {
    uint64_t value = 0;
    ASSERT_EQ(read(event_.get(), &value, sizeof value), ssize_t{sizeof value});
    ++count_;
  }
  // Until epoll has refused `number` times in all.
  void RunUntilFailure(int number) {
    while (failures_ < number) loop_.RunOnce();
  }

  static inline int failure_ = 0, failures_ = 0;  // errno, and how often
  EventLoop loop_{&Control};
  const ipc::UniqueFd event_{eventfd(0, EFD_CLOEXEC)};
  int count_ = 0;
};

TEST_F(EventLoopTest, AfterEachHandlerAndTimerItCallsOneMore) {
  failure_ = 0;
  int events = 0, after = 0;
  loop_.AfterEach([&] { EXPECT_EQ(++after, events); });
  loop_.Watch(event_.get(), [&] {
    Count();
    ++events;
  });
  Signal();
  for (int i = 0; i < 2; ++i) loop_.After(0, [&] { ++events; });
  while (events < 3) loop_.RunOnce();
  EXPECT_EQ(after, 3);
  loop_.AfterEach(nullptr);
  loop_.After(0, [&] { ++events; });
  while (events < 4) loop_.RunOnce();
  EXPECT_EQ(after, 3);
}

TEST_F(EventLoopTest, WithoutRoomItAsksUntilThereIsSome) {
  for (const int failure : {ENOSPC, ENOMEM}) {
    failure_ = failure;
    failures_ = count_ = 0;
    loop_.Watch(event_.get(), [this] { Count(); });
    RunUntilFailure(3);
    EXPECT_EQ(count_, 0) << "there was nothing to read";
    Signal();
    RunUntilFailure(4);
    EXPECT_EQ(count_, 1) << "nothing is missed";
    failure_ = 0;
    Signal();
    while (count_ < 2) loop_.RunOnce();
    Signal();
    loop_.RunOnce();
    EXPECT_EQ(count_, 3) << "it is watched as any other";
    EXPECT_EQ(failures_, 4);
    loop_.Unwatch(event_.get());
  }
}

TEST_F(EventLoopTest, WhatIsNotWatchedAnyMoreIsNotAskedAfter) {
  failures_ = 0;
  loop_.Watch(event_.get(), [this] { Count(); });
  Signal();
  loop_.Unwatch(event_.get());
  failure_ = 0;
  loop_.Watch(event_.get(), [this] { Count(); });  // another one of the same number
  bool passed = false;
  loop_.After(2 * EventLoop::kRetryUs, [&passed] { passed = true; });
  while (!passed) loop_.RunOnce();
  EXPECT_EQ(count_, 1);
  EXPECT_EQ(failures_, 1);
}

TEST_F(EventLoopTest, AHandlerMayEndAWatchThatNeverBegan) {
  loop_.Watch(event_.get(), [this] {
    Count();
    loop_.Unwatch(event_.get());
  });
  Signal();
  while (count_ == 0) loop_.RunOnce();
  failure_ = failures_ = 0;
  bool passed = false;
  loop_.After(2 * EventLoop::kRetryUs, [&passed] { passed = true; });
  Signal();
  while (!passed) loop_.RunOnce();
  EXPECT_EQ(count_, 1);
}

TEST_F(EventLoopTest, AnEventThatNothingBroughtIsOneToo) {
  std::vector<std::string> calls;
  loop_.AfterEach([&calls] { calls.push_back("after"); });
  loop_.HandleAsEvent([&calls] { calls.push_back("event"); });
  EXPECT_EQ(calls, (std::vector<std::string>{"event", "after"}));
}

int64_t virtual_ns = 0;

TEST(EventLoopClockTest, TimersAreDueByTheClockThatWasGiven) {
  EventLoop loop(&epoll_ctl, [] { return virtual_ns; });
  int fired = 0;
  loop.After(1'000'000'000, [&fired] { ++fired; });
  loop.HandleReady();
  EXPECT_EQ(fired, 0);
  virtual_ns += 1'000'000'000'000;
  loop.HandleReady();
  EXPECT_EQ(fired, 1);
}

}  // namespace
}  // namespace common
