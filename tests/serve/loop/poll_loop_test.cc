// The loop over pipes and real timers.
#include "serve/loop/poll_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "serve/loop/descriptor.h"

namespace serve {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    read_end = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
  }
  void Fill() { EXPECT_EQ(write(write_end.get(), "x", 1), 1); }
  Descriptor read_end, write_end;
};

TEST(PollLoopTest, TimersAreCalledInOrderAndOnce) {
  PollLoop loop;
  std::string called;
  const int64_t now_us = loop.NowUs();
  loop.AddTimer(now_us + 2000, [&] { called += 'b'; });
  loop.AddTimer(now_us + 4000, [&] { loop.Stop(); });
  loop.AddTimer(now_us + 1000, [&] { called += 'a'; });
  const EventLoop::TimerId cancelled = loop.AddTimer(now_us + 1500, [&] { called += 'x'; });
  loop.CancelTimer(cancelled);
  loop.Run();
  EXPECT_EQ(called, "ab");
  EXPECT_GE(loop.NowUs(), now_us + 4000);
}

TEST(PollLoopTest, ATimerMayCancelTheNext) {
  PollLoop loop;
  bool called = false;
  EventLoop::TimerId next = 0;
  loop.AddTimer(0, [&] {
    loop.CancelTimer(next);
    loop.AddTimer(0, [&] { loop.Stop(); });
  });
  next = loop.AddTimer(1, [&] { called = true; });
  loop.Run();
  EXPECT_FALSE(called);
}

// Both descriptors are readable in one turn; the first call takes the second away, and its number
// comes again for another descriptor.
TEST(PollLoopTest, WhatIsRemovedIsNotCalled) {
  PollLoop loop;
  Pipe first, second, third;
  first.Fill();
  second.Fill();
  int calls = 0;
  const auto once = [&](short) {
    ++calls;
    loop.RemoveDescriptor(first.read_end.get());
    loop.RemoveDescriptor(second.read_end.get());
    loop.AddDescriptor(second.read_end.get(), POLLOUT, [&](short) { ++calls; });
    loop.AddTimer(loop.NowUs(), [&] { loop.Stop(); });
  };
  loop.AddDescriptor(first.read_end.get(), POLLIN, once);
  loop.AddDescriptor(second.read_end.get(), POLLIN, once);
  loop.Run();
  EXPECT_EQ(calls, 1);
}

TEST(PollLoopTest, AnEndIsSeen) {
  PollLoop loop;
  Pipe pipe;
  pipe.write_end.Reset();
  short seen = 0;
  loop.AddDescriptor(pipe.read_end.get(), POLLIN, [&](short events) {
    seen = events;
    loop.Stop();
  });
  loop.Run();
  EXPECT_NE(seen & POLLHUP, 0);
}

}  // namespace
}  // namespace serve
