// What the tests of the driver interface share: a context for each test, and kernels in PTX.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace softgpu::testing {

// EXPECT that a driver call succeeds, naming its error otherwise.
inline std::string Name(CUresult result) {
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  return name != nullptr ? name : "?";
}

#define EXPECT_CU(expected, call) \
  EXPECT_EQ(softgpu::testing::Name(expected), softgpu::testing::Name(call))
#define ASSERT_CU(expected, call) \
  ASSERT_EQ(softgpu::testing::Name(expected), softgpu::testing::Name(call))
#define EXPECT_OK(call) EXPECT_CU(CUDA_SUCCESS, call)
#define ASSERT_OK(call) ASSERT_CU(CUDA_SUCCESS, call)

inline constexpr char kHeader[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

// c[i] = a[i] + b[i] for i < n, floats.
inline constexpr char kVectorAdd[] = R"(
.visible .entry vector_add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra DONE;
  mul.wide.s32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
DONE:
  ret;
}
)";

// Stores one 32-bit value.
inline constexpr char kStore[] = R"(
.visible .entry store(.param .u64 to, .param .u32 value)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

inline constexpr char kEmpty[] = ".visible .entry empty()\n{\n  ret;\n}\n";

// Adds 1 to a 32-bit counter after having seen it: shows the order of kernels.
inline constexpr char kIncrement[] = R"(
.visible .entry increment(.param .u64 at)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [at];
  ld.global.u32 %r1, [%rd1];
  add.u32 %r2, %r1, 1;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";

// A context of its own for every test, current on the test's thread.
class DriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(cuInit(0));
    ASSERT_OK(cuCtxCreate(&context_, nullptr, 0, 0));
  }
  void TearDown() override { EXPECT_OK(cuCtxDestroy(context_)); }

  CUmodule Load(const std::string& kernels) {
    CUmodule module = nullptr;
    EXPECT_OK(cuModuleLoadData(&module, (kHeader + kernels).c_str()));
    return module;
  }
  CUfunction Kernel(const std::string& kernels, const char* name) {
    CUfunction function = nullptr;
    EXPECT_OK(cuModuleGetFunction(&function, Load(kernels), name));
    return function;
  }
  CUresult Launch(CUfunction function, std::vector<void*> params, CUstream stream = nullptr) {
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params.data(), nullptr);
  }

  CUcontext context_ = nullptr;
};

}  // namespace softgpu::testing
