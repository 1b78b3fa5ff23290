// Streams, events, host functions and memory operations: order, asynchrony, time.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "tests/harness/seed.h"
#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Queues a C++ function as a host function.
void Host(CUstream stream, std::function<void()> function) {
  ASSERT_OK(cuLaunchHostFunc(
      stream,
      [](void* data) {
        const std::unique_ptr<std::function<void()>> run(static_cast<std::function<void()>*>(data));
        (*run)();
      },
      new std::function<void()>(std::move(function))));
}

// Holds a stream until opened.
class Gate {
 public:
  void Hold(CUstream stream) {
    Host(stream, [future = opened_.get_future().share()] { future.wait(); });
  }
  void Open() { opened_.set_value(); }

 private:
  std::promise<void> opened_;
};

class Trace {
 public:
  std::function<void()> Add(std::string name) {
    return [this, name] {
      base::MutexLock lock(&mutex_);
      names_ += name;
    };
  }
  std::string names() {
    base::MutexLock lock(&mutex_);
    return names_;
  }

 private:
  base::Mutex mutex_;
  std::string names_ GUARDED_BY(mutex_);
};

class StreamTest : public DriverTest {
 protected:
  CUstream Blocking() { return Create(CU_STREAM_DEFAULT); }
  CUstream NonBlocking() { return Create(CU_STREAM_NON_BLOCKING); }
  CUstream Create(unsigned flags) {
    CUstream stream = nullptr;
    EXPECT_OK(cuStreamCreate(&stream, flags));
    return stream;
  }
};

TEST_F(StreamTest, RunsInOrderAndAsynchronously) {
  const CUstream stream = NonBlocking();
  Gate gate;
  Trace trace;
  gate.Hold(stream);
  for (const char* name : {"a", "b", "c"}) Host(stream, trace.Add(name));
  EXPECT_CU(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  EXPECT_EQ(trace.names(), "");
  gate.Open();
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuStreamQuery(stream));
  EXPECT_EQ(trace.names(), "abc");
}

TEST_F(StreamTest, LegacyStreamAndBlockingStreamsWaitForEachOther) {
  const CUstream one = Blocking(), two = Blocking();
  Gate gate;
  Trace trace;
  gate.Hold(one);
  Host(one, trace.Add("1"));
  Host(nullptr, trace.Add("L"));
  Host(two, trace.Add("2"));
  EXPECT_CU(CUDA_ERROR_NOT_READY, cuStreamQuery(two));
  gate.Open();
  ASSERT_OK(cuStreamSynchronize(two));
  EXPECT_EQ(trace.names(), "1L2");
}

TEST_F(StreamTest, NonBlockingStreamsDoNotWaitForTheLegacyStream) {
  const CUstream stream = NonBlocking();
  Gate gate;
  Trace trace;
  gate.Hold(nullptr);
  Host(nullptr, trace.Add("L"));
  Host(stream, trace.Add("n"));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(trace.names(), "n");
  gate.Open();
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(trace.names(), "nL");
}

TEST_F(StreamTest, PerThreadStreamsAreTheirThreadsOwn) {
  Gate gate;
  Trace trace;
  gate.Hold(CU_STREAM_PER_THREAD);
  std::thread([&] {
    ASSERT_OK(cuCtxSetCurrent(context_));
    Host(CU_STREAM_PER_THREAD, trace.Add("other"));
    ASSERT_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  }).join();
  EXPECT_EQ(trace.names(), "other");
  EXPECT_CU(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_PER_THREAD));
  gate.Open();
  ASSERT_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

TEST_F(StreamTest, WaitEventOrdersStreams) {
  const CUstream first = NonBlocking(), second = NonBlocking();
  CUevent event = nullptr;
  ASSERT_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  EXPECT_OK(cuEventQuery(event)) << "never recorded";
  Gate gate;
  Trace trace;
  gate.Hold(first);
  Host(first, trace.Add("1"));
  ASSERT_OK(cuEventRecord(event, first));
  EXPECT_CU(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  ASSERT_OK(cuStreamWaitEvent(second, event, 0));
  ASSERT_OK(cuEventRecord(event, second)) << "a later recording leaves the wait alone";
  Host(second, trace.Add("2"));
  gate.Open();
  ASSERT_OK(cuStreamSynchronize(second));
  EXPECT_EQ(trace.names(), "12");
  EXPECT_OK(cuEventSynchronize(event));
  ASSERT_OK(cuEventDestroy(event));
}

// When the second stream's thread gets to its wait before the first is done: sooner or later.
TEST_F(StreamTest, WhoeverEndsAWaitGoesOnWithWhatWaited) {
  const CUstream first = NonBlocking(), second = NonBlocking();
  CUevent event = nullptr;
  ASSERT_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  std::thread::id one, two = std::this_thread::get_id();
  for (int round = 0; one != two && round < 1000; ++round) {
    Gate gate;
    gate.Hold(first);
    Host(first, [&one] { one = std::this_thread::get_id(); });
    ASSERT_OK(cuEventRecord(event, first));
    ASSERT_OK(cuStreamWaitEvent(second, event, 0));
    Host(second, [&two] { two = std::this_thread::get_id(); });
    std::this_thread::yield();
    gate.Open();
    ASSERT_OK(cuStreamSynchronize(second));
  }
  EXPECT_EQ(one, two);
  ASSERT_OK(cuEventDestroy(event));
}

// Each stream waits now and then for what another has at that moment, and sees it done.
TEST_F(StreamTest, ManyStreamsWaitForEachOther) {
  constexpr size_t kStreams = 6, kRounds = 3000;
  std::mt19937_64 random(harness::Seed());
  CUstream streams[kStreams];
  CUevent event = nullptr;
  ASSERT_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  size_t submitted[kStreams] = {};
  std::atomic<size_t> done[kStreams] = {};
  std::atomic<int> early{0};
  for (CUstream& stream : streams) stream = NonBlocking();
  for (size_t round = 0; round < kRounds; ++round) {
    const size_t own = random() % kStreams, other = random() % kStreams;
    size_t awaited = 0;
    if (random() % 2 == 0) {
      ASSERT_OK(cuEventRecord(event, streams[other]));
      ASSERT_OK(cuStreamWaitEvent(streams[own], event, 0));
      awaited = submitted[other];
    }
    ++submitted[own];
    Host(streams[own], [&, own, other, awaited] {
      if (done[other] < awaited) ++early;
      ++done[own];
    });
    if (random() % 100 == 0) {
      ASSERT_OK(cuStreamSynchronize(streams[other]));
    }
  }
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(early, 0);
  for (size_t i = 0; i < kStreams; ++i) EXPECT_EQ(done[i], submitted[i]);
  ASSERT_OK(cuEventDestroy(event));
}

TEST_F(StreamTest, DestroyedStreamFinishesItsWork) {
  const CUstream stream = NonBlocking();
  Gate gate;
  std::promise<void> ran;
  gate.Hold(stream);
  Host(stream, [&] { ran.set_value(); });
  ASSERT_OK(cuStreamDestroy(stream));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(stream));
  gate.Open();
  ASSERT_EQ(ran.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST_F(StreamTest, EventsMeasureTime) {
  CUevent start = nullptr, end = nullptr, untimed = nullptr;
  ASSERT_OK(cuEventCreate(&start, 0));
  ASSERT_OK(cuEventCreate(&end, 0));
  ASSERT_OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  float ms = -1;
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, start, end));
  Gate gate;
  const Clock::time_point begin = Clock::now();
  ASSERT_OK(cuEventRecord(start, nullptr));
  Host(nullptr, [] {
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(20);
    while (Clock::now() < end) continue;
  });
  gate.Hold(nullptr);
  ASSERT_OK(cuEventRecord(end, nullptr));
  ASSERT_OK(cuEventRecord(untimed, nullptr));
  EXPECT_CU(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, start, end));
  gate.Open();
  ASSERT_OK(cuEventSynchronize(end));
  const double wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  ASSERT_OK(cuEventElapsedTime(&ms, start, end));
  EXPECT_GE(ms, 20.0f);
  EXPECT_LE(ms, wall_ms);
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, start, untimed));
}

TEST_F(StreamTest, CallbacksMayNotCallCuda) {
  CUresult inside = CUDA_SUCCESS;
  Host(nullptr, [&] { inside = cuCtxSynchronize(); });
  ASSERT_OK(cuStreamSynchronize(nullptr));
  EXPECT_CU(CUDA_ERROR_NOT_PERMITTED, inside);
  std::pair<CUstream, CUresult> seen{nullptr, CUDA_ERROR_UNKNOWN};
  const CUstream stream = Blocking();
  ASSERT_OK(cuStreamAddCallback(
      stream,
      [](CUstream s, CUresult status, void* data) {
        *static_cast<std::pair<CUstream, CUresult>*>(data) = {s, status};
      },
      &seen, 0));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(seen.first, stream);
  EXPECT_OK(seen.second);
}

TEST_F(StreamTest, WaitValueSeesWritesOfTheHost) {
  void* memory = nullptr;
  ASSERT_OK(cuMemHostAlloc(&memory, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  uint32_t* const words = static_cast<uint32_t*>(memory);
  words[0] = words[1] = words[2] = 0;
  const CUdeviceptr device = reinterpret_cast<CUdeviceptr>(memory);
  const CUstream stream = NonBlocking();
  ASSERT_OK(cuStreamWaitValue32(stream, device, 5, CU_STREAM_WAIT_VALUE_EQ));
  ASSERT_OK(cuStreamWriteValue32(stream, device + 4, 9, 0));
  ASSERT_OK(cuStreamWriteValue64(stream, device + 8, 1ull << 40, 0));
  EXPECT_CU(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  EXPECT_EQ(std::atomic_ref<uint32_t>(words[1]).load(), 0u);
  std::atomic_ref<uint32_t>(words[0]).store(5);
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(words[1], 9u);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(words + 2), 1ull << 40);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, device + 2, 9, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, 0x1000, 9, 0));
}

TEST_F(StreamTest, WhatTakesNoTimeIsDoneAtOnceOnAnIdleStream) {
  void* memory = nullptr;
  ASSERT_OK(cuMemHostAlloc(&memory, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  uint32_t* const word = static_cast<uint32_t*>(memory);
  const CUdeviceptr device = reinterpret_cast<CUdeviceptr>(memory);
  CUevent event = nullptr;
  ASSERT_OK(cuEventCreate(&event, 0));
  for (const CUstream stream : {NonBlocking(), Blocking()}) {  // new ones: no thread looks at them
    *word = 0;
    ASSERT_OK(cuStreamWriteValue32(stream, device, 7, 0));
    ASSERT_OK(cuEventRecord(event, stream));
    EXPECT_OK(cuEventQuery(event));
    EXPECT_OK(cuStreamQuery(stream));
    EXPECT_EQ(*word, 7u);
    Gate gate;
    gate.Hold(stream);
    ASSERT_OK(cuStreamWriteValue32(stream, device, 100, 0));
    ASSERT_OK(cuEventRecord(event, stream));
    EXPECT_CU(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    EXPECT_EQ(std::atomic_ref<uint32_t>(*word).load(), 7u) << "not before what was sent before";
    gate.Open();
    ASSERT_OK(cuStreamSynchronize(stream));
    EXPECT_EQ(*word, 100u);
  }
}

TEST_F(StreamTest, BatchesRunInOrder) {
  CUdeviceptr device = 0;
  ASSERT_OK(cuMemAlloc(&device, 16));
  CUstreamBatchMemOpParams items[2] = {};
  items[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  items[0].writeValue.address = device;
  items[0].writeValue.value = 3;
  items[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  items[1].waitValue.address = device;
  items[1].waitValue.value = 3;
  items[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  ASSERT_OK(cuStreamBatchMemOp(nullptr, 2, items, 0));
  EXPECT_OK(cuStreamSynchronize(nullptr));
}

TEST_F(StreamTest, QueriesOfStreams) {
  CUstream stream = nullptr;
  ASSERT_OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
  int priority = 0;
  unsigned flags = 0;
  CUcontext context = nullptr;
  CUdevice device = 7;
  unsigned long long id = 0, legacy_id = 0;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  ASSERT_OK(cuStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, -5) << "clamped to the greatest";
  ASSERT_OK(cuStreamGetFlags(stream, &flags));
  EXPECT_EQ(flags, unsigned{CU_STREAM_NON_BLOCKING});
  ASSERT_OK(cuStreamGetCtx(stream, &context));
  EXPECT_EQ(context, context_);
  ASSERT_OK(cuStreamGetDevice(stream, &device));
  EXPECT_EQ(device, 0);
  ASSERT_OK(cuStreamGetId(stream, &id));
  ASSERT_OK(cuStreamGetId(nullptr, &legacy_id));
  EXPECT_NE(id, legacy_id);
  ASSERT_OK(cuStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(reinterpret_cast<CUstream>(this)));
}

TEST_F(StreamTest, ManyThreadsManyStreams) {
  constexpr int kThreads = 8, kEach = 300;
  CUdeviceptr counters = 0;
  ASSERT_OK(cuMemAlloc(&counters, kThreads * 4));
  ASSERT_OK(cuMemsetD32(counters, 0, kThreads));
  ASSERT_OK(cuStreamSynchronize(nullptr));  // non-blocking streams don't wait for it
  const CUfunction increment = Kernel(kIncrement, "increment");
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ASSERT_OK(cuCtxSetCurrent(context_));
      CUdeviceptr own = counters + 4 * t;
      const CUstream stream = t % 2 == 0 ? Blocking() : NonBlocking();
      for (int i = 0; i < kEach; ++i) {
        ASSERT_OK(Launch(increment, {&own}, stream));
        if (i % 50 == 7) {
          ASSERT_OK(Launch(increment, {&own}, stream));
        }
        if (i % 97 == 0) {
          ASSERT_OK(cuStreamSynchronize(stream));
        }
      }
      ASSERT_OK(cuStreamSynchronize(stream));
      ASSERT_OK(cuStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  unsigned values[kThreads] = {};
  ASSERT_OK(cuMemcpyDtoH(values, counters, sizeof values));
  for (const unsigned value : values) EXPECT_EQ(value, kEach + 6u);
}

}  // namespace
}  // namespace softgpu::testing
