// Contexts: stacks, primary contexts, limits, threads.
#include <thread>

#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

using ContextTest = DriverTest;

CUcontext Current() {
  CUcontext current = nullptr;
  EXPECT_OK(cuCtxGetCurrent(&current));
  return current;
}

TEST_F(ContextTest, StackOfThread) {
  EXPECT_EQ(Current(), context_);
  CUcontext other = nullptr, popped = nullptr;
  ASSERT_OK(cuCtxCreate(&other, nullptr, 0, 0));
  EXPECT_EQ(Current(), other);
  ASSERT_OK(cuCtxPushCurrent(context_));
  EXPECT_EQ(Current(), context_);
  ASSERT_OK(cuCtxPopCurrent(&popped));
  EXPECT_EQ(popped, context_);
  std::thread([&] {
    EXPECT_EQ(Current(), nullptr);
    CUdeviceptr pointer = 0;
    EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&pointer, 16));
    EXPECT_OK(cuCtxSetCurrent(other));
    EXPECT_OK(cuMemAlloc(&pointer, 16));
  }).join();
  ASSERT_OK(cuCtxDestroy(other));
  EXPECT_EQ(Current(), context_);
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(other));
}

TEST_F(ContextTest, DestroyedContextIsRefusedAndItsMemoryIsFree) {
  size_t before = 0, after = 0, total = 0;
  ASSERT_OK(cuMemGetInfo(&before, &total));
  CUcontext other = nullptr;
  ASSERT_OK(cuCtxCreate(&other, nullptr, 0, 0));
  CUdeviceptr pointer = 0;
  ASSERT_OK(cuMemAlloc(&pointer, 8 << 20));
  std::thread thread([&] {
    EXPECT_OK(cuCtxSetCurrent(other));
    EXPECT_OK(cuCtxDestroy(other));
  });
  thread.join();
  EXPECT_CU(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&pointer, 16));
  CUcontext popped = nullptr;
  ASSERT_OK(cuCtxPopCurrent(&popped));
  ASSERT_OK(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
}

TEST_F(ContextTest, PrimaryContextLivesWhileRetained) {
  CUcontext first = nullptr, second = nullptr;
  unsigned flags = 0;
  int active = -1;
  ASSERT_OK(cuDevicePrimaryCtxRetain(&first, 0));
  ASSERT_OK(cuDevicePrimaryCtxRetain(&second, 0));
  EXPECT_EQ(first, second);
  ASSERT_OK(cuDevicePrimaryCtxRelease(0));
  ASSERT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  ASSERT_OK(cuDevicePrimaryCtxRelease(0));
  ASSERT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
}

TEST_F(ContextTest, LimitsAndRanges) {
  size_t value = 0;
  ASSERT_OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 16));
  ASSERT_OK(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
  EXPECT_EQ(value, 1u << 16);
  EXPECT_CU(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&value, CU_LIMIT_MAX));
  int least = 1, greatest = 1;
  ASSERT_OK(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 0);
  EXPECT_LT(greatest, 0);
  unsigned long long id = 0;
  ASSERT_OK(cuCtxGetId(nullptr, &id));
  EXPECT_NE(id, 0u);
}

}  // namespace
}  // namespace softgpu::testing
