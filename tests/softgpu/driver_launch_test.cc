// Modules and kernel launches through the driver interface.
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

using LaunchTest = DriverTest;

class VectorAddTest : public DriverTest {
 protected:
  static constexpr int kCount = 1000;

  void SetUp() override {
    DriverTest::SetUp();
    add_ = Kernel(kVectorAdd, "vector_add");
    std::vector<float> a(kCount), b(kCount, 0.5f);
    std::iota(a.begin(), a.end(), 0.0f);
    for (CUdeviceptr* pointer : {&a_, &b_, &c_}) ASSERT_OK(cuMemAlloc(pointer, kCount * 4));
    ASSERT_OK(cuMemcpyHtoD(a_, a.data(), kCount * 4));
    ASSERT_OK(cuMemcpyHtoD(b_, b.data(), kCount * 4));
    ASSERT_OK(cuMemsetD8(c_, 0, kCount * 4));
  }

  void ExpectSum() {
    std::vector<float> c(kCount);
    ASSERT_OK(cuMemcpyDtoH(c.data(), c_, kCount * 4));
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(c[i], i + 0.5f) << i;
  }

  CUfunction add_ = nullptr;
  CUdeviceptr a_ = 0, b_ = 0, c_ = 0;
  int count_ = kCount;
};

TEST_F(VectorAddTest, KernelParams) {
  void* params[] = {&a_, &b_, &c_, &count_};
  ASSERT_OK(
      cuLaunchKernel(add_, (kCount + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr));
  ExpectSum();
}

TEST_F(VectorAddTest, ExtraBuffer) {
  struct {
    CUdeviceptr a, b, c;
    int count;
  } packed = {a_, b_, c_, kCount};
  size_t bytes = 28;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  ASSERT_OK(cuLaunchKernel(add_, 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra));
  ExpectSum();
}

TEST_F(VectorAddTest, LaunchKernelEx) {
  CUlaunchConfig config = {};
  config.gridDimX = 8;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 128;
  void* params[] = {&a_, &b_, &c_, &count_};
  ASSERT_OK(cuLaunchKernelEx(&config, add_, params, nullptr));
  ExpectSum();
}

TEST_F(LaunchTest, LimitsAreCheckedAtTheCall) {
  const CUfunction empty = Kernel(kEmpty, "empty");
  const auto launch = [&](unsigned grid_x, unsigned grid_y, unsigned block_x, unsigned block_z,
                          unsigned shared_bytes) {
    return cuLaunchKernel(empty, grid_x, grid_y, 1, block_x, 1, block_z, shared_bytes, nullptr,
                          nullptr, nullptr);
  };
  EXPECT_OK(launch(1, 1, 1024, 1, 48 << 10));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, launch(0, 1, 1, 1, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, launch(1, 65536, 1, 1, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, launch(1, 1, 1025, 1, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, launch(1, 1, 1, 65, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, launch(1, 1, 1, 1, (48 << 10) + 1));
  ASSERT_OK(cuFuncSetAttribute(empty, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10));
  EXPECT_OK(launch(1, 1, 1, 1, 100 << 10));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, launch(1, 1, 1, 1, (100 << 10) + 1));
  EXPECT_OK(cuCtxSynchronize());
}

TEST_F(LaunchTest, HandlesAreChecked) {
  const CUfunction store = Kernel(kStore, "store");
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, Launch(nullptr, {}));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, Launch(reinterpret_cast<CUfunction>(this), {}));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
            cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
}

TEST_F(LaunchTest, CooperativeGridsMustFit) {
  const CUfunction empty = Kernel(kEmpty, "empty");
  EXPECT_OK(cuLaunchCooperativeKernel(empty, 8, 1, 1, 1024, 1, 1, 0, nullptr, nullptr));
  EXPECT_CU(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            cuLaunchCooperativeKernel(empty, 17, 1, 1, 1024, 1, 1, 0, nullptr, nullptr));
  EXPECT_OK(cuCtxSynchronize());
}

TEST_F(LaunchTest, ModuleVariables) {
  const CUmodule module =
      Load(std::string(".visible .global .align 4 .u32 counter[2] = {7, 9};\n") + kStore);
  CUdeviceptr counter = 0;
  size_t bytes = 0;
  ASSERT_OK(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
  EXPECT_EQ(bytes, 8u);
  unsigned values[2] = {};
  ASSERT_OK(cuMemcpyDtoH(values, counter, sizeof values));
  EXPECT_EQ(values[0], 7u);
  EXPECT_EQ(values[1], 9u);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(counter));
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&counter, &bytes, module, "absent"));
  ASSERT_OK(cuModuleUnload(module));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
}

}  // namespace
}  // namespace softgpu::testing
