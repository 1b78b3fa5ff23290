// Device printf: to stdout at synchronisation, or to the handler of extension.h.
#include <dlfcn.h>

#include <string>
#include <utility>

#include "softgpu/driver/extension.h"
#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

// printf("value %d\n", value)
constexpr char kPrint[] = R"(
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 format[10] = {118, 97, 108, 117, 101, 32, 37, 100, 10, 0};
.visible .entry print(.param .u32 value)
{
  .local .align 8 .b8 arguments[8];
  .reg .b32 %r<3>;
  .reg .b64 %rd<5>;
  mov.u64 %rd1, arguments;
  cvta.local.u64 %rd2, %rd1;
  ld.param.u32 %r1, [value];
  st.local.u32 [%rd1], %r1;
  mov.u64 %rd3, format;
  cvta.global.u64 %rd4, %rd3;
  {
    .param .b64 param0;
    st.param.b64 [param0], %rd4;
    .param .b64 param1;
    st.param.b64 [param1], %rd2;
    .param .b32 result;
    call.uni (result), vprintf, (param0, param1);
    ld.param.b32 %r2, [result];
  }
  ret;
}
)";

using PrintTest = DriverTest;

TEST_F(PrintTest, ReachesStdoutWhenTheHostSynchronises) {
  const CUfunction print = Kernel(kPrint, "print");
  ::testing::internal::CaptureStdout();
  int value = 41;
  ASSERT_OK(Launch(print, {&value}));
  value = 42;
  ASSERT_OK(Launch(print, {&value}));
  ASSERT_OK(cuStreamSynchronize(nullptr));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "value 41\nvalue 42\n");
}

TEST_F(PrintTest, HandlerGetsStreamAndText) {
  using SetHandler = CUresult(SoftgpuPrintHandler, void*);
  SetHandler* const set =
      reinterpret_cast<SetHandler*>(dlsym(RTLD_DEFAULT, "softgpuSetPrintHandler"));
  ASSERT_NE(set, nullptr);
  std::pair<CUstream, std::string> seen;
  ASSERT_OK(set(
      [](CUstream stream, const char* text, size_t bytes, void* data) {
        *static_cast<std::pair<CUstream, std::string>*>(data) = {stream, std::string(text, bytes)};
      },
      &seen));
  const CUfunction print = Kernel(kPrint, "print");
  CUstream stream = nullptr;
  ASSERT_OK(cuStreamCreate(&stream, 0));
  int value = -3;
  ASSERT_OK(Launch(print, {&value}, stream));
  while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
  }
  EXPECT_EQ(seen.first, stream);
  EXPECT_EQ(seen.second, "value -3\n");
  ASSERT_OK(set(nullptr, nullptr));
}

}  // namespace
}  // namespace softgpu::testing
