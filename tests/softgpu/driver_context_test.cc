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

constexpr char kHeapUser[] = R"(
.extern .func (.param .b64 block) malloc(.param .b64 bytes);
.extern .func free(.param .b64 block);
.visible .entry take(.param .u64 to, .param .u64 bytes)
{
  .reg .b64 %l<4>;
  ld.param.u64 %l1, [to];
  ld.param.u64 %l2, [bytes];
  .param .b64 wanted;
  .param .b64 got;
  st.param.b64 [wanted], %l2;
  call (got), malloc, (wanted);
  ld.param.b64 %l3, [got];
  st.global.u64 [%l1], %l3;
  ret;
}
.visible .entry give(.param .u64 block)
{
  .reg .b64 %l<2>;
  ld.param.u64 %l1, [block];
  .param .b64 given;
  st.param.b64 [given], %l1;
  call free, (given);
  ret;
}
)";

TEST_F(ContextTest, HeapOfMallocHasItsLimitAndLivesWithTheContext) {
  size_t limit = 0, free_before = 0, free_now = 0, total = 0;
  ASSERT_OK(cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(limit, 8u << 20);
  ASSERT_OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 4 << 20));
  const CUfunction take = Kernel(kHeapUser, "take");
  CUdeviceptr at = 0;
  ASSERT_OK(cuMemAlloc(&at, 8));
  ASSERT_OK(cuMemGetInfo(&free_before, &total));
  const auto malloc_in_kernel = [&](uint64_t bytes) {
    uint64_t block = 0;
    EXPECT_OK(Launch(take, {&at, &bytes}));
    EXPECT_OK(cuMemcpyDtoH(&block, at, 8));
    return block;
  };
  uint64_t block = malloc_in_kernel(3 << 20);
  EXPECT_NE(block, 0u);
  ASSERT_OK(cuMemGetInfo(&free_now, &total));
  EXPECT_EQ(free_before - free_now, 4u << 20) << "all of it, at the first launch";
  EXPECT_EQ(malloc_in_kernel(2 << 20), 0u) << "it is full";
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20));
  // Kernels of another module work on the same heap.
  ASSERT_OK(Launch(Kernel(kHeapUser, "give"), {&block}));
  EXPECT_NE(malloc_in_kernel(2 << 20), 0u);
}

TEST_F(ContextTest, HeapThatDoesNotFitRefusesTheLaunch) {
  ASSERT_OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, size_t{1} << 50));
  uint64_t value = 0;
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, Launch(Kernel(kHeapUser, "give"), {&value}));
  ASSERT_OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 0));
  EXPECT_OK(Launch(Kernel(kHeapUser, "give"), {&value}));
}

}  // namespace
}  // namespace softgpu::testing
