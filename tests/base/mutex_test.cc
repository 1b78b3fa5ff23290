// Locks exclude, conditions wake and time out. That the annotations are checked is style.locks's to
// say.
#include "base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace base {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 10'000;

struct Counter {
  Mutex mutex;
  int count GUARDED_BY(mutex) = 0;
};

TEST(MutexTest, ExcludesOtherThreads) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&counter] {
      for (int round = 0; round < kRounds; ++round) {
        const MutexLock lock(&counter.mutex);
        ++counter.count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MutexLock lock(&counter.mutex);
  EXPECT_EQ(counter.count, kThreads * kRounds);
}

bool CanLock(Mutex* mutex) {
  if (!mutex->TryLock()) return false;
  mutex->Unlock();
  return true;
}

bool AnotherThreadCanLock(Mutex* mutex) {
  bool can = false;
  std::thread([&] { can = CanLock(mutex); }).join();
  return can;
}

TEST(MutexTest, TryLockFailsWhileAnotherThreadHoldsIt) {
  Mutex mutex;
  {
    const MutexLock lock(&mutex);
    EXPECT_FALSE(AnotherThreadCanLock(&mutex));
  }
  EXPECT_TRUE(AnotherThreadCanLock(&mutex));
}

TEST(MutexTest, ALockCanLetGoForAWhile) {
  Mutex mutex;
  {
    MutexLock lock(&mutex);
    lock.Unlock();
    EXPECT_TRUE(AnotherThreadCanLock(&mutex));
    lock.Lock();
    EXPECT_FALSE(AnotherThreadCanLock(&mutex));
    lock.Unlock();
  }
  EXPECT_TRUE(CanLock(&mutex));  // the destructor left alone what was let go
}

TEST(MutexTest, ALockTakesOverWhatTryLockGot) {
  Mutex mutex;
  if (!mutex.TryLock()) {
    ADD_FAILURE();
    return;
  }
  {
    const MutexLock lock(&mutex, std::adopt_lock);
    EXPECT_FALSE(AnotherThreadCanLock(&mutex));
  }
  EXPECT_TRUE(AnotherThreadCanLock(&mutex));
}

TEST(CondVarTest, WakesWhoWaitsAndHoldsTheMutexAgain) {
  Counter counter;
  CondVar changed;
  std::thread other([&] {
    const MutexLock lock(&counter.mutex);
    counter.count = 1;
    changed.NotifyAll();
    while (counter.count != 2) changed.Wait(&counter.mutex);
    counter.count = 3;
    changed.NotifyOne();
  });
  {
    const MutexLock lock(&counter.mutex);
    while (counter.count != 1) changed.Wait(&counter.mutex);
    counter.count = 2;
    changed.NotifyOne();
    while (counter.count != 3) changed.Wait(&counter.mutex);
  }
  other.join();
}

TEST(CondVarTest, TimesOutWithTheMutexHeld) {
  Counter counter;
  CondVar changed;
  const MutexLock lock(&counter.mutex);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  while (changed.WaitUntil(&counter.mutex, end)) {
  }
  EXPECT_GE(std::chrono::steady_clock::now(), end);
  counter.count = 1;
}

TEST(SharedMutexTest, LetsReadersInTogetherAndWritersAlone) {
  SharedMutex mutex;
  std::atomic<int> readers{0};
  std::atomic<bool> second_reads{false};
  std::thread other;
  {
    const ReaderLock lock(&mutex);
    readers.fetch_add(1);
    other = std::thread([&] {
      const ReaderLock second(&mutex);
      second_reads = readers.load() == 1;  // the first one still reads
      readers.fetch_add(1);
      readers.notify_all();
    });
    readers.wait(1);
    readers.store(0);
  }
  other.join();
  EXPECT_TRUE(second_reads);
  bool alone = false;
  std::thread writer;
  {
    const WriterLock lock(&mutex);
    alone = true;
    writer = std::thread([&] {
      const WriterLock second(&mutex);
      EXPECT_FALSE(alone);
    });
    alone = false;
  }
  writer.join();
}

}  // namespace
}  // namespace base
