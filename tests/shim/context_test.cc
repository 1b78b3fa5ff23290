// Contexts, devices, limits, pools: what the client answers from its own state.
#include <thread>

#include "shim/driver/local.h"
#include "tests/shim/fixture.h"

namespace {

class Contexts : public ::testing::Test {
 protected:
  void SetUp() override {
    worker_ = &shim_test::FakeWorker::Start();
    ASSERT_EQ(local::cuInit(0), CUDA_SUCCESS);
  }
  shim_test::FakeWorker* worker_ = nullptr;
};

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  EXPECT_EQ(local::cuCtxGetCurrent(&context), CUDA_SUCCESS);
  return context;
}

TEST_F(Contexts, EachThreadHasAStack) {
  CUcontext a = nullptr, b = nullptr, popped = nullptr;
  EXPECT_EQ(CurrentContext(), nullptr);
  ASSERT_EQ(local::cuCtxCreate_v2(&a, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuCtxCreate_v2(&b, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(CurrentContext(), b);
  CUdevice device = -1;
  EXPECT_EQ(local::cuCtxGetDevice(&device), CUDA_SUCCESS);
  EXPECT_EQ(device, 1);
  std::thread([&] { EXPECT_EQ(CurrentContext(), nullptr); }).join();
  EXPECT_EQ(local::cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  EXPECT_EQ(popped, b);
  EXPECT_EQ(CurrentContext(), a);
  EXPECT_EQ(local::cuCtxSetCurrent(b), CUDA_SUCCESS);  // replaces
  EXPECT_EQ(local::cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  EXPECT_EQ(CurrentContext(), nullptr);
  EXPECT_EQ(local::cuCtxPopCurrent_v2(&popped), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(local::cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x77)), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(local::cuCtxDestroy_v2(a), CUDA_SUCCESS);
  EXPECT_EQ(local::cuCtxDestroy_v2(b), CUDA_SUCCESS);
  EXPECT_EQ(local::cuCtxDestroy_v2(b), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, DestroyingTakesEverythingInIt) {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr address = 0;
  std::map<std::string, int> before = worker_->counts();
  ASSERT_EQ(local::cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemAlloc_v2(&address, 100), CUDA_SUCCESS);
  std::thread other([&] {
    ASSERT_EQ(local::cuCtxSetCurrent(context), CUDA_SUCCESS);
    CUdeviceptr more = 0;
    ASSERT_EQ(local::cuMemAlloc_v2(&more, 100), CUDA_SUCCESS);
    ASSERT_EQ(local::cuCtxDestroy_v2(context), CUDA_SUCCESS);
    EXPECT_EQ(local::cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  });
  other.join();
  EXPECT_EQ(local::cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(local::cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
  CUcontext popped = nullptr;
  EXPECT_EQ(local::cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  std::map<std::string, int> after = worker_->counts();
  for (const char* name : {"ContextReset", "StreamDestroy", "cuEventDestroy_v2"}) {
    EXPECT_EQ(after[name] - before[name], 1) << name;
  }
  EXPECT_GE(after["ArenaUnmap"] - before["ArenaUnmap"], 1);
}

TEST_F(Contexts, PrimaryIsCounted) {
  CUcontext first = nullptr, second = nullptr;
  unsigned flags = 9;
  int active = 9;
  EXPECT_EQ(local::cuDevicePrimaryCtxRelease_v2(1), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(local::cuDevicePrimaryCtxSetFlags_v2(1, CU_CTX_SCHED_SPIN), CUDA_SUCCESS);
  ASSERT_EQ(local::cuDevicePrimaryCtxRetain(&first, 1), CUDA_SUCCESS);
  ASSERT_EQ(local::cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  EXPECT_EQ(first, second);
  EXPECT_EQ(local::cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(flags, unsigned{CU_CTX_SCHED_SPIN});
  EXPECT_EQ(active, 1);
  EXPECT_EQ(local::cuCtxSetCurrent(first), CUDA_SUCCESS);
  EXPECT_EQ(local::cuCtxDestroy_v2(first), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(local::cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
  EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(local::cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
  EXPECT_EQ(local::cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ASSERT_EQ(local::cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);  // the same context again
  EXPECT_EQ(local::cuDevicePrimaryCtxReset_v2(1), CUDA_SUCCESS);
  EXPECT_EQ(local::cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
}

TEST_F(Contexts, ErrorsHaveNames) {
  const char* text = nullptr;
  EXPECT_EQ(local::cuGetErrorName(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED");
  EXPECT_EQ(local::cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "out of memory");
  EXPECT_EQ(local::cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

TEST_F(Contexts, EntryPointsByNameAndVersion) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  ASSERT_EQ(local::cuGetProcAddress_v2("cuCtxCreate", &function, 4000, 0, &found), CUDA_SUCCESS);
  EXPECT_EQ(found, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_EQ(function, reinterpret_cast<void*>(&::cuCtxCreate_v2));
  ASSERT_EQ(local::cuGetProcAddress_v2("cuMemcpy", &function, 13000,
                                       CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &found),
            CUDA_SUCCESS);
  EXPECT_EQ(function, reinterpret_cast<void*>(&::cuMemcpy_ptds));
  ASSERT_EQ(local::cuGetProcAddress_v2("cuNoSuch", &function, 13000, 0, &found), CUDA_SUCCESS);
  EXPECT_EQ(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(local::cuGetProcAddress("cuNoSuch", &function, 13000, 0), CUDA_ERROR_NOT_FOUND);
}

TEST_F(Contexts, DeniedCallsPrintNothingUnasked) {
  CUcontext context = nullptr;
  ASSERT_EQ(local::cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(::cuGraphicsMapResources(0, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(local::cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

TEST_F(Contexts, StreamOrderedAllocation) {
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
  CUmemoryPool pool = nullptr, again = nullptr;
  ASSERT_EQ(local::cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuDeviceGetMemPool(&again, 0), CUDA_SUCCESS);
  EXPECT_EQ(pool, again);
  cuuint64_t threshold = 1 << 20, read = 0;
  EXPECT_EQ(local::cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
            CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &read),
            CUDA_SUCCESS);
  EXPECT_EQ(read, threshold);
  ASSERT_EQ(local::cuMemAllocAsync(&address, 1000, stream), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemFreeAsync(address, stream), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemFreeAsync(address, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

}  // namespace
