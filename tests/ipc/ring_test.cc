#include "ipc/ring.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "ipc/futex.h"
#include "ipc/session_file.h"
#include "tests/harness/seed.h"
#include "tests/ipc/testing.h"

namespace ipc {
namespace {

constexpr int64_t kTimeoutUs = 20 * kSecondUs;

class RingTest : public ::testing::Test {
 protected:
  RingTest() : fd_(*SessionFile::Create(1, 0)), file_(*SessionFile::Map(fd_)) {}
  ~RingTest() override { close(fd_); }

  void Send(Sender* sender, size_t bytes, uint32_t number) {
    const std::span<std::byte> room = sender->Reserve(bytes, kTimeoutUs);
    ASSERT_EQ(room.size(), bytes);
    FillMessage(room, number);
    sender->Commit(bytes);
  }

  const int fd_;
  SessionFile file_;
};

TEST_F(RingTest, CarriesAMessageBothWays) {
  Channel client = file_.ClientChannel(), worker = file_.WorkerChannel();
  Send(client.sender.get(), 100, 5);
  EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, kTimeoutUs), 5));
  Send(worker.sender.get(), 24, 6);
  EXPECT_TRUE(IsMessage(client.receiver->NextUntrusted(0, kTimeoutUs), 6));
}

TEST_F(RingTest, NothingComesWhenNothingWasSent) {
  Channel worker = file_.WorkerChannel();
  EXPECT_TRUE(worker.receiver->NextUntrusted(0, 0).empty());
  EXPECT_TRUE(worker.receiver->NextUntrusted(20, 2000).empty());
  EXPECT_FALSE(worker.receiver->broken());
}

TEST_F(RingTest, APeekLeavesTheMessageWhereItIs) {
  Channel client = file_.ClientChannel(), worker = file_.WorkerChannel();
  EXPECT_TRUE(worker.receiver->PeekUntrusted(0, 0).empty());
  EXPECT_FALSE(worker.receiver->Pending());
  Send(client.sender.get(), 100, 5);
  Send(client.sender.get(), 40, 6);
  EXPECT_TRUE(IsMessage(worker.receiver->PeekUntrusted(0, kTimeoutUs), 5));
  EXPECT_EQ(file_.page()->to_worker.tail.load(), 0u);
  EXPECT_TRUE(worker.receiver->Pending());
  // Another consumer finds what this one has only looked at.
  EXPECT_TRUE(IsMessage(file_.WorkerChannel().receiver->NextUntrusted(0, 0), 5));
  file_.page()->to_worker.tail.store(0);
  EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, kTimeoutUs), 5));
  EXPECT_TRUE(IsMessage(worker.receiver->PeekUntrusted(0, kTimeoutUs), 6));
  EXPECT_TRUE(IsMessage(worker.receiver->PeekUntrusted(0, kTimeoutUs), 6));
  EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, kTimeoutUs), 6));
  EXPECT_TRUE(worker.receiver->PeekUntrusted(0, 0).empty());
  EXPECT_FALSE(worker.receiver->Pending());
}

// What was decided about a message that was looked at holds for the one that is taken, though its
// sender writes another op, another body and another length over it meanwhile.
TEST_F(RingTest, WhatWasLookedAtIsWhatIsTaken) {
  Channel client = file_.ClientChannel(), worker = file_.WorkerChannel();
  const std::span<std::byte> room = client.sender->Reserve(100, kTimeoutUs);
  FillMessage(room, 5);
  client.sender->Commit(100);
  EXPECT_TRUE(IsMessage(worker.receiver->PeekUntrusted(0, kTimeoutUs), 5));
  FillMessage(room.first(40), 6);
  EXPECT_TRUE(IsMessage(worker.receiver->PeekUntrusted(0, kTimeoutUs), 5));
  EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, kTimeoutUs), 5));
  Send(client.sender.get(), 64, 7);
  EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, kTimeoutUs), 7));
}

TEST_F(RingTest, AFlagEndsAWait) {
  Channel worker = file_.WorkerChannel();
  std::atomic<uint32_t> flag{0};
  worker.receiver->SetInterrupt(&flag);
  std::thread waiter([&] { EXPECT_TRUE(worker.receiver->NextUntrusted(0, kTimeoutUs).empty()); });
  while (file_.page()->to_worker.consumer_sleeping.load() == 0) std::this_thread::yield();
  const int64_t begin = MonotonicNs();
  flag.store(1);
  file_.page()->worker_doorbell.fetch_add(1);
  FutexWakeAll(&file_.page()->worker_doorbell);
  waiter.join();
  EXPECT_LT(MonotonicNs() - begin, kTimeoutUs * 1000 / 2);
}

TEST_F(RingTest, AnotherConsumerGoesOnWhereTheLastOneStopped) {
  Channel client = file_.ClientChannel();
  RingSender* const sender = static_cast<RingSender*>(client.sender.get());
  {
    Channel worker = file_.WorkerChannel();
    for (uint32_t number : {1, 2, 3}) Send(sender, 100, number);
    EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, kTimeoutUs), 1));
  }
  // What was not taken is set aside, others go first, and then it comes as it was.
  std::vector<std::byte> unread;
  ASSERT_TRUE(sender->CopyUnread(&unread));
  ASSERT_EQ(unread.size(), 2u * 104);
  sender->Rewind();
  EXPECT_TRUE(sender->Drained());
  Channel worker = file_.WorkerChannel();
  EXPECT_TRUE(worker.receiver->NextUntrusted(0, 0).empty());
  Send(sender, 40, 9);
  for (const size_t at : {0, 104}) {
    const std::span<std::byte> room = sender->Reserve(100, 0);
    std::memcpy(room.data(), unread.data() + at, 100);
    sender->Commit(100);
  }
  for (uint32_t number : {9, 2, 3})
    EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, kTimeoutUs), number));
}

TEST_F(RingTest, WordsThatMakeNoSenseCannotBeCopied) {
  Channel client = file_.ClientChannel();
  Send(client.sender.get(), 100, 1);
  file_.page()->to_worker.tail.store(uint64_t{1} << 40);
  std::vector<std::byte> unread;
  EXPECT_FALSE(static_cast<RingSender*>(client.sender.get())->CopyUnread(&unread));
}

TEST_F(RingTest, AReservedMessageMayBeSentShorter) {
  Channel client = file_.ClientChannel(), worker = file_.WorkerChannel();
  const std::span<std::byte> room = client.sender->Reserve(limits::kMessageBytesMax, 0);
  FillMessage(room.first(31), 9);
  client.sender->Commit(31);
  Send(client.sender.get(), 40, 10);
  EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, kTimeoutUs), 9));
  EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, kTimeoutUs), 10));
}

TEST_F(RingTest, AFullRingGivesNoRoomUntilItIsRead) {
  Channel client = file_.ClientChannel(), worker = file_.WorkerChannel();
  uint32_t sent = 0;
  for (; !client.sender->Reserve(limits::kMessageBytesMax, 0).empty(); ++sent) {
    Send(client.sender.get(), limits::kMessageBytesMax, sent);
  }
  EXPECT_EQ(sent, limits::kRingBytes / limits::kMessageBytesMax);
  EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, 0), 0));
  Send(client.sender.get(), limits::kMessageBytesMax, sent);
  for (uint32_t i = 1; i <= sent; ++i)
    EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, 0), i));
  EXPECT_TRUE(worker.receiver->NextUntrusted(0, 0).empty());
}

TEST_F(RingTest, ASleepingReceiverWakes) {
  Channel client = file_.ClientChannel(), worker = file_.WorkerChannel();
  std::thread receiver([&worker] {
    for (uint32_t i = 0; i < 200; ++i)
      EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, kTimeoutUs), i));
  });
  for (uint32_t i = 0; i < 200; ++i) {
    // Every other message meets a receiver that has announced its sleep.
    const int64_t deadline = MonotonicNs() + kTimeoutUs * 1000;
    while (i % 2 == 0 && file_.page()->to_worker.consumer_sleeping.load() == 0 &&
           MonotonicNs() < deadline) {
      std::this_thread::yield();
    }
    Send(client.sender.get(), 64, i);
  }
  receiver.join();
}

// A program's thread is bound to the processor on which the worker's thread went to sleep.
TEST_F(RingTest, AConsumerThatSleptOnThisCpuNeedsItForItsNextMessage) {
  Channel client = file_.ClientChannel(), worker = file_.WorkerChannel();
  RingWords& words = file_.page()->to_worker;
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_TRUE(worker.receiver->NextUntrusted(0, 1).empty());
  EXPECT_FALSE(ConsumerNeedsThisCpu(words)) << "no message waits";
  Send(client.sender.get(), 24, 1);
  EXPECT_TRUE(ConsumerNeedsThisCpu(words));
  words.consumer_cpu.fetch_add(1);
  EXPECT_FALSE(ConsumerNeedsThisCpu(words)) << "it sleeps elsewhere";
  words.consumer_cpu.fetch_sub(1);
  EXPECT_TRUE(IsMessage(worker.receiver->NextUntrusted(0, kTimeoutUs), 1));
  EXPECT_FALSE(ConsumerNeedsThisCpu(words)) << "the message is taken";
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST_F(RingTest, ASleepingSenderWakesWhenThereIsRoom) {
  Channel client = file_.ClientChannel(), worker = file_.WorkerChannel();
  constexpr uint32_t kMessages = 200;
  std::thread sender([this, &client] {
    for (uint32_t i = 0; i < kMessages; ++i) Send(client.sender.get(), limits::kMessageBytesMax, i);
  });
  const int64_t deadline = MonotonicNs() + kTimeoutUs * 1000;
  while (file_.page()->to_worker.producer_sleeping.load() == 0 && MonotonicNs() < deadline) {
    std::this_thread::yield();
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(IsMessage(worker.receiver->NextUntrusted(20, kTimeoutUs), i)) << i;
  }
  sender.join();
}

// Whatever the lengths and whoever is faster, messages come whole and in order.
TEST_F(RingTest, RandomMessagesBetweenThreads) {
  std::mt19937_64 random(harness::Seed());
  const uint64_t seed = random();
  constexpr uint32_t kMessages = 20'000;
  std::thread sender([this, seed] {
    std::mt19937_64 lengths(seed);
    Channel client = file_.ClientChannel();
    for (uint32_t i = 0; i < kMessages; ++i) Send(client.sender.get(), RandomBytes(&lengths), i);
  });
  std::mt19937_64 lengths(seed);
  Channel worker = file_.WorkerChannel();
  for (uint32_t i = 0; i < kMessages; ++i) {
    const std::span<const std::byte> message =
        worker.receiver->NextUntrusted(i % 3 == 0 ? 0 : 20, kTimeoutUs);
    ASSERT_EQ(message.size(), RandomBytes(&lengths)) << i;
    ASSERT_TRUE(IsMessage(message, i)) << i;
  }
  sender.join();
}

TEST_F(RingTest, RandomMessagesBetweenProcesses) {
  std::mt19937_64 random(harness::Seed());
  const uint64_t seed = random();
  constexpr uint32_t kMessages = 5'000;
  const pid_t child = fork();
  if (child == 0) {  // echoes everything
    absl::StatusOr<SessionFile> file = SessionFile::Map(fd_);
    Channel worker = file->WorkerChannel();
    for (uint32_t i = 0; i < kMessages; ++i) {
      const std::span<const std::byte> message = worker.receiver->NextUntrusted(20, kTimeoutUs);
      if (message.empty()) _exit(1);
      const std::span<std::byte> room = worker.sender->Reserve(message.size(), kTimeoutUs);
      if (room.empty()) _exit(2);
      std::copy(message.begin(), message.end(), room.begin());
      worker.sender->Commit(message.size());
    }
    _exit(0);
  }
  std::mt19937_64 lengths(seed);
  Channel client = file_.ClientChannel();
  uint32_t sent = 0, received = 0;
  while (received < kMessages) {
    const uint32_t ahead = static_cast<uint32_t>(random() % 8);
    for (uint32_t i = 0; i <= ahead && sent < kMessages; ++i)
      Send(client.sender.get(), RandomBytes(&lengths), sent++);
    while (received < sent) {
      ASSERT_TRUE(IsMessage(client.receiver->NextUntrusted(20, kTimeoutUs), received)) << received;
      ++received;
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// --- a peer that lies
// --------------------------------------------------------------------------------

TEST_F(RingTest, ALengthThatNoMessageHasBreaksTheRing) {
  for (const uint32_t lie : {0u, 1u, 23u, limits::kMessageBytesMax + 1, 0xffffffffu}) {
    const int fd = *SessionFile::Create(2, 0);
    SessionFile file = *SessionFile::Map(fd);
    close(fd);
    Channel client = file.ClientChannel(), worker = file.WorkerChannel();
    const std::span<std::byte> room = client.sender->Reserve(64, 0);
    std::memcpy(room.data(), &lie, sizeof lie);
    client.sender->Commit(64);
    EXPECT_TRUE(worker.receiver->NextUntrusted(0, kSecondUs).empty()) << lie;
    EXPECT_TRUE(worker.receiver->broken()) << lie;
    EXPECT_TRUE(worker.receiver->NextUntrusted(0, kSecondUs).empty());
  }
}

TEST_F(RingTest, AMessageLongerThanWhatWasPublishedBreaksTheRing) {
  Channel client = file_.ClientChannel(), worker = file_.WorkerChannel();
  const std::span<std::byte> room = client.sender->Reserve(64, 0);
  const uint32_t lie = 4096;
  std::memcpy(room.data(), &lie, sizeof lie);
  client.sender->Commit(64);
  EXPECT_TRUE(worker.receiver->NextUntrusted(0, kSecondUs).empty());
  EXPECT_TRUE(worker.receiver->broken());
}

TEST_F(RingTest, AHeadFarAwayBreaksTheRing) {
  Channel worker = file_.WorkerChannel();
  file_.page()->to_worker.head.store(uint64_t{1} << 40);
  EXPECT_TRUE(worker.receiver->NextUntrusted(0, kSecondUs).empty());
  EXPECT_TRUE(worker.receiver->broken());
}

TEST_F(RingTest, ATailThatLiesGivesNoRoomThatIsNotThere) {
  Channel client = file_.ClientChannel();
  for (uint32_t i = 0; i < limits::kRingBytes / limits::kMessageBytesMax; ++i) {
    Send(client.sender.get(), limits::kMessageBytesMax, i);
  }
  for (const uint64_t lie : {uint64_t{1} << 40, ~uint64_t{0}, uint64_t{limits::kRingBytes} + 1}) {
    file_.page()->to_worker.tail.store(lie);
    EXPECT_TRUE(client.sender->Reserve(64, 1000).empty()) << lie;
  }
}

// Random garbage in the whole ring: the receiver stays inside, and what it hands out has the length
// it says.
TEST_F(RingTest, GarbageNeverHarmsTheReceiver) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 200; ++round) {
    const int fd = *SessionFile::Create(3, 0);
    SessionFile file = *SessionFile::Map(fd);
    close(fd);
    Channel worker = file.WorkerChannel();
    uint32_t* const words = reinterpret_cast<uint32_t*>(file.base() + kToWorkerOffset);
    for (size_t i = 0; i < 4096; ++i) {
      words[i] =
          static_cast<uint32_t>(random() % 3 == 0 ? random() : random() % limits::kMessageBytesMax);
    }
    file.page()->to_worker.head.store(random() % (2 * limits::kRingBytes));
    for (int i = 0; i < 1000 && !worker.receiver->broken(); ++i) {
      const std::span<const std::byte> message = worker.receiver->NextUntrusted(0, 0);
      if (message.empty()) break;
      uint32_t bytes = 0;
      std::memcpy(&bytes, message.data(), sizeof bytes);
      ASSERT_EQ(bytes, message.size());
      ASSERT_LE(bytes, limits::kMessageBytesMax);
    }
  }
}

}  // namespace
}  // namespace ipc
