// The whole way of a small program through the driver facade's bodies, to a pretended worker and
// back.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "shim/driver/local.h"
#include "tests/shim/fake_worker.h"

namespace {

using shim_test::FakeWorker;

constexpr char kPtx[] = ".version 7.0\n.target sm_80\n";

TEST(Walk, InitToCopyBack) {
  FakeWorker& worker = FakeWorker::Start();
  ASSERT_EQ(local::cuInit(0), CUDA_SUCCESS);
  int count = 0;
  ASSERT_EQ(local::cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
  char name[16];
  ASSERT_EQ(local::cuDeviceGetName(name, sizeof name, 1), CUDA_SUCCESS);
  EXPECT_STREQ(name, "fake 1");
  int managed = -1;
  ASSERT_EQ(local::cuDeviceGetAttribute(&managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(managed, 1);

  CUdeviceptr address = 0;
  EXPECT_EQ(local::cuMemAlloc_v2(&address, 64), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext context = nullptr;
  ASSERT_EQ(local::cuCtxCreate_v4(&context, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemAlloc_v2(&address, 4096), CUDA_SUCCESS);
  std::vector<int> in(1024), out(1024);
  std::iota(in.begin(), in.end(), 1);
  ASSERT_EQ(local::cuMemcpyHtoD_v2(address, in.data(), 4096), CUDA_SUCCESS);

  CUmodule module = nullptr;
  ASSERT_EQ(local::cuModuleLoadData(&module, kPtx), CUDA_SUCCESS);
  CUfunction function = nullptr;
  ASSERT_EQ(local::cuModuleGetFunction(&function, module, "kernel"), CUDA_SUCCESS);
  uint32_t n = 7;
  char tail[3] = {'a', 'b', 'c'};
  void* params[] = {&address, &n, tail};
  ASSERT_EQ(local::cuLaunchKernel(function, 2, 1, 1, 128, 1, 1, 16, nullptr, params, nullptr),
            CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemcpyDtoH_v2(out.data(), address, 4096), CUDA_SUCCESS);
  EXPECT_EQ(in, out);

  const std::vector<shim_test::SeenLaunch> launches = worker.launches();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].function, "kernel");
  EXPECT_EQ(launches[0].grid[0], 2u);
  EXPECT_EQ(launches[0].block[0], 128u);
  EXPECT_EQ(launches[0].shared_bytes, 16u);
  ASSERT_EQ(launches[0].params.size(), 19u);
  EXPECT_EQ(std::memcmp(launches[0].params.data(), &address, 8), 0);
  EXPECT_EQ(std::memcmp(launches[0].params.data() + 8, &n, 4), 0);
  EXPECT_EQ(std::memcmp(launches[0].params.data() + 16, tail, 3), 0);

  EXPECT_EQ(local::cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(local::cuCtxDestroy_v2(context), CUDA_SUCCESS);
  EXPECT_EQ(local::cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
