// Waiting: completion words, events, host functions, many threads at once.
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "tests/shim/fixture.h"

namespace {

using Sync = shim_test::InContext;

TEST_F(Sync, StreamIsReadyWithoutAMessageWhenNothingIsNew) {
  CUstream stream = nullptr;
  ASSERT_EQ(local::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const int marks = CountOf("StreamMark");
  EXPECT_EQ(local::cuStreamQuery(stream), CUDA_SUCCESS);
  EXPECT_EQ(local::cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("StreamMark"), marks);
  EXPECT_EQ(local::cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  EXPECT_EQ(local::cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Sync, WaitsUntilTheDeviceIsThere) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr address = 0;
  ASSERT_EQ(local::cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemAlloc_v2(&address, 4096), CUDA_SUCCESS);
  EXPECT_EQ(local::cuEventQuery(event), CUDA_SUCCESS);  // never recorded
  worker_->Hold();
  char bytes[16] = {};
  ASSERT_EQ(local::cuMemcpyHtoDAsync_v2(address, bytes, sizeof bytes, stream), CUDA_SUCCESS);
  ASSERT_EQ(local::cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(local::cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(local::cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  const int marks = CountOf("StreamMark");
  EXPECT_EQ(local::cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(CountOf("StreamMark"), marks);  // asking again sends nothing

  std::atomic<int> returned{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&, i] {
      local::cuCtxSetCurrent(context_);
      EXPECT_EQ(i % 2 == 0 ? local::cuStreamSynchronize(stream) : local::cuEventSynchronize(event),
                CUDA_SUCCESS);
      ++returned;
    });
  }
  while (CountOf("EventWake") < 2) std::this_thread::yield();
  EXPECT_EQ(returned.load(), 0);
  worker_->Release();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(local::cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(local::cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(local::cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

// The message by which the waiting thread asks for its wake is no work that a wait must cover.
TEST_F(Sync, AStreamStaysCleanAfterAWaitThatSlept) {
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  ASSERT_EQ(local::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemAlloc_v2(&address, 4096), CUDA_SUCCESS);
  worker_->Hold();
  char bytes[16] = {};
  ASSERT_EQ(local::cuMemcpyHtoDAsync_v2(address, bytes, sizeof bytes, stream), CUDA_SUCCESS);
  const int marks = CountOf("StreamMark");
  std::thread waiter([&] {
    local::cuCtxSetCurrent(context_);
    EXPECT_EQ(local::cuStreamSynchronize(stream), CUDA_SUCCESS);
  });
  while (CountOf("StreamMark") < marks + 2) std::this_thread::yield();
  worker_->Release();
  waiter.join();
  EXPECT_EQ(local::cuStreamQuery(stream), CUDA_SUCCESS);
  EXPECT_EQ(local::cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("StreamMark"), marks + 2) << "the first wait's mark, and its wake";
}

TEST_F(Sync, ContextWaitsForStreamsThatAreGone) {
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  ASSERT_EQ(local::cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemAlloc_v2(&address, 64), CUDA_SUCCESS);
  worker_->Hold();
  ASSERT_EQ(local::cuMemsetD8_v2(address, 1, 64), CUDA_SUCCESS);
  char bytes[16] = {};
  ASSERT_EQ(local::cuMemcpyHtoDAsync_v2(address, bytes, sizeof bytes, stream), CUDA_SUCCESS);
  ASSERT_EQ(local::cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  std::atomic<bool> returned{false};
  std::thread waiter([&] {
    local::cuCtxSetCurrent(context_);
    EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
    returned = true;
  });
  // A new stream may not take the busy slot: its marks would be overwritten.
  CUstream other = nullptr;
  ASSERT_EQ(local::cuStreamCreate(&other, 0), CUDA_SUCCESS);
  EXPECT_NE(static_cast<uint32_t>(reinterpret_cast<uint64_t>(other)),
            static_cast<uint32_t>(reinterpret_cast<uint64_t>(stream)));
  EXPECT_FALSE(returned.load());
  worker_->Release();
  waiter.join();
}

TEST_F(Sync, AsynchronousFailuresSurfaceOnceAtTheNextWait) {
  worker_->page()->async_error.store(CUDA_ERROR_INVALID_ADDRESS_SPACE);
  EXPECT_EQ(local::cuCtxSynchronize(), CUDA_ERROR_INVALID_ADDRESS_SPACE);
  EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(Sync, HostFunctionsRunInOrderOnTheServiceThread) {
  CUstream stream = nullptr;
  ASSERT_EQ(local::cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  struct Seen {
    base::Mutex mutex;
    std::vector<int> order GUARDED_BY(mutex);
    std::thread::id thread GUARDED_BY(mutex);
  } seen;
  struct Call {
    Seen* seen;
    int number;
  };
  std::vector<Call> calls;
  for (int i = 0; i < 20; ++i) calls.push_back({&seen, i});
  const CUhostFn function = [](void* data) {
    const Call* const call = static_cast<const Call*>(data);
    const base::MutexLock lock(&call->seen->mutex);
    call->seen->order.push_back(call->number);
    call->seen->thread = std::this_thread::get_id();
  };
  for (Call& call : calls)
    ASSERT_EQ(local::cuLaunchHostFunc(stream, function, &call), CUDA_SUCCESS);
  for (;;) {
    const base::MutexLock lock(&seen.mutex);
    if (seen.order.size() == calls.size()) break;
  }
  const base::MutexLock lock(&seen.mutex);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(seen.order[static_cast<size_t>(i)], i);
  EXPECT_NE(seen.thread, std::this_thread::get_id());
}

// Client and worker are one process here: ThreadSanitizer does not see the order that the rings and
// the words of their file make.
#if !defined(__SANITIZE_THREAD__)
TEST_F(Sync, WorkBehindAHostFunctionWaitsForIt) {
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  void* pinned = nullptr;
  ASSERT_EQ(local::cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemAlloc_v2(&address, 64), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemAllocHost_v2(&pinned, 64), CUDA_SUCCESS);
  struct Call {
    void* to;
    std::atomic<bool> may_return{false};
  } call{pinned};
  const CUhostFn slow = [](void* data) {
    const Call& mine = *static_cast<const Call*>(data);
    while (!mine.may_return) std::this_thread::yield();
    *static_cast<uint32_t*>(mine.to) = 7;
  };
  ASSERT_EQ(local::cuLaunchHostFunc(stream, slow, &call), CUDA_SUCCESS);
  const int copies = CountOf("CopyDevice");
  ASSERT_EQ(local::cuMemcpyHtoDAsync_v2(address, pinned, 4, stream), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("CopyDevice"), copies + 1);
  EXPECT_EQ(local::cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  call.may_return = true;
  ASSERT_EQ(local::cuStreamSynchronize(stream), CUDA_SUCCESS);
  uint32_t value = 0;
  ASSERT_EQ(local::cuMemcpyDtoH_v2(&value, address, 4), CUDA_SUCCESS);
  EXPECT_EQ(value, 7u);
  EXPECT_EQ(local::cuMemFreeHost(pinned), CUDA_SUCCESS);
}
#endif

TEST_F(Sync, ThreadsShareTheRing) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(local::cuModuleLoadData(&module, ".version 7.0\n"), CUDA_SUCCESS);
  ASSERT_EQ(local::cuModuleGetFunction(&function, module, "kernel"), CUDA_SUCCESS);
  const size_t before = worker_->launches().size();
  constexpr int kThreads = 16, kLaunches = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ASSERT_EQ(local::cuCtxSetCurrent(context_), CUDA_SUCCESS);
      CUstream stream = nullptr;
      ASSERT_EQ(local::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
      CUdeviceptr address = 0;
      ASSERT_EQ(local::cuMemAlloc_v2(&address, 256), CUDA_SUCCESS);
      for (uint32_t i = 0; i < kLaunches; ++i) {
        uint32_t tag = static_cast<uint32_t>(t) << 16 | i;
        char tail[3] = {};
        void* params[] = {&address, &tag, tail};
        ASSERT_EQ(local::cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr),
                  CUDA_SUCCESS);
        if (i % 100 == 0) {
          ASSERT_EQ(local::cuStreamSynchronize(stream), CUDA_SUCCESS);
        }
        size_t free = 0, total = 0;
        if (i % 50 == 0) {
          ASSERT_EQ(local::cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
        }
      }
      ASSERT_EQ(local::cuStreamSynchronize(stream), CUDA_SUCCESS);
      ASSERT_EQ(local::cuMemFree_v2(address), CUDA_SUCCESS);
      ASSERT_EQ(local::cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<shim_test::SeenLaunch> launches = worker_->launches();
  ASSERT_EQ(launches.size() - before, static_cast<size_t>(kThreads) * kLaunches);
  std::vector<uint32_t> next(kThreads, 0);  // each thread's order is kept
  for (size_t i = before; i < launches.size(); ++i) {
    uint32_t tag = 0;
    std::memcpy(&tag, launches[i].params.data() + 8, sizeof tag);
    EXPECT_EQ(tag & 0xffff, next[tag >> 16]++);
  }
}

TEST_F(Sync, EachThreadHasItsOwnDefaultStream) {
  const auto stream_of_launch = [&](CUstream stream) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(local::cuModuleLoadData(&module, ".version 7.0\n"), CUDA_SUCCESS);
    EXPECT_EQ(local::cuModuleGetFunction(&function, module, "kernel"), CUDA_SUCCESS);
    uint64_t zero = 0;
    void* params[] = {&zero, &zero, &zero};
    EXPECT_EQ(local::cuLaunchKernel_ptsz(function, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
    return worker_->launches().back().stream;
  };
  const CUstream mine = stream_of_launch(nullptr);
  const CUstream legacy = stream_of_launch(CU_STREAM_LEGACY);
  EXPECT_NE(mine, legacy);
  EXPECT_EQ(stream_of_launch(CU_STREAM_PER_THREAD), mine);
  EXPECT_EQ(stream_of_launch(CU_STREAM_LEGACY), legacy);
  CUstream other = nullptr;
  std::thread thread([&] {
    local::cuCtxSetCurrent(context_);
    other = stream_of_launch(nullptr);
  });
  thread.join();
  EXPECT_NE(other, legacy);
  EXPECT_NE(other, mine);
}

}  // namespace
