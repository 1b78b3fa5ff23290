// cuLink*: modules made of several PTX texts, what conflicts between them, and the device runtime.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "softgpu/driver/fatbin.h"
#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

std::string Text(const std::string& kernels) { return kHeader + kernels; }

class LinkerTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log_, reinterpret_cast<void*>(sizeof log_)};
    std::memcpy(options_, options, sizeof options);
    std::memcpy(values_, values, sizeof values);
    ASSERT_OK(cuLinkCreate(2, options_, values_, &link_));
  }
  void TearDown() override {
    EXPECT_OK(cuLinkDestroy(link_));
    DriverTest::TearDown();
  }

  CUresult Add(CUjitInputType type, const std::string& bytes, const char* name) {
    std::string copy = bytes;
    return cuLinkAddData(link_, type, copy.data(), copy.size(), name, 0, nullptr, nullptr);
  }
  // The module of all that was added.
  CUresult Load(CUmodule* module) {
    void* image = nullptr;
    size_t bytes = 0;
    const CUresult completed = cuLinkComplete(link_, &image, &bytes);
    return completed == CUDA_SUCCESS ? cuModuleLoadData(module, image) : completed;
  }
  // The value that `kernel` stores.
  uint32_t Stored(CUmodule module, const char* kernel) {
    CUfunction function = nullptr;
    CUdeviceptr at = 0;
    uint32_t value = 0;
    EXPECT_OK(cuModuleGetFunction(&function, module, kernel));
    EXPECT_OK(cuMemAlloc(&at, sizeof value));
    EXPECT_OK(Launch(function, {&at}));
    EXPECT_OK(cuMemcpyDtoH(&value, at, sizeof value));
    EXPECT_OK(cuMemFree(at));
    return value;
  }

  CUlinkState link_ = nullptr;
  char log_[1024] = "";
  CUjit_option options_[2];
  void* values_[2];
};

// A kernel that stores `variable`.
std::string Reader(const std::string& kernel, const std::string& variable) {
  return ".visible .entry " + kernel + "(.param .u64 to) {\n" +
         ".reg .b32 %r; .reg .b64 %rd;\nld.param.u64 %rd, [to];\nld.global.u32 %r, [" + variable +
         "];\nst.global.u32 [%rd], %r;\nret;\n}\n";
}

TEST_F(LinkerTest, LinkedPtxIsLoadable) {
  for (const char* kernel : {kStore, kEmpty})
    ASSERT_OK(Add(CU_JIT_INPUT_PTX, Text(kernel) + std::string(1, '\0'), "in"));
  CUmodule module = nullptr;
  ASSERT_OK(Load(&module));
  CUfunction function = nullptr;
  EXPECT_OK(cuModuleGetFunction(&function, module, "store"));
  EXPECT_OK(cuModuleGetFunction(&function, module, "empty"));
}

TEST_F(LinkerTest, StaticVariablesOfOneNameStayApart) {
  const std::string kFirst = ".global .align 4 .u32 $str = 1;\n";
  const std::string kSecond = ".global .align 4 .u32 $str = 2;\n";
  ASSERT_OK(Add(CU_JIT_INPUT_PTX, Text(kFirst + Reader("first", "$str")), "1"));
  ASSERT_OK(Add(CU_JIT_INPUT_PTX, Text(kSecond + Reader("second", "$str")), "2"));
  CUmodule module = nullptr;
  ASSERT_OK(Load(&module)) << log_;
  EXPECT_EQ(Stored(module, "first"), 1u);
  EXPECT_EQ(Stored(module, "second"), 2u);
}

// Compilers define what they share in every text, with .common or .weak.
TEST_F(LinkerTest, CommonAndWeakSymbolsMerge) {
  const std::string kShared =
      ".common .global .align 8 .u64 environment;\n.weak .global .align 4 .u32 number = 7;\n"
      ".weak .func (.param .b32 r) f(.param .b32 x)\n{ .reg .b32 %r<3>; ld.param.u32 %r1, [x]; "
      "add.u32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }\n";
  ASSERT_OK(Add(CU_JIT_INPUT_PTX, Text(kShared + Reader("first", "number")), "1"));
  ASSERT_OK(Add(CU_JIT_INPUT_PTX, Text(kShared + Reader("second", "number")), "2"));
  CUmodule module = nullptr;
  ASSERT_OK(Load(&module)) << log_;
  CUdeviceptr number = 0, environment = 0;
  size_t bytes = 0;
  ASSERT_OK(cuModuleGetGlobal(&number, nullptr, module, "number"));
  ASSERT_OK(cuModuleGetGlobal(&environment, &bytes, module, "environment"));
  EXPECT_EQ(bytes, 8u);
  const uint32_t nine = 9;
  ASSERT_OK(cuMemcpyHtoD(number, &nine, sizeof nine));
  EXPECT_EQ(Stored(module, "first"), 9u);
  EXPECT_EQ(Stored(module, "second"), 9u);
}

TEST_F(LinkerTest, AConflictNamesBothInputs) {
  const std::string kStrong = ".visible .global .u32 x = 1;\n";
  ASSERT_OK(Add(CU_JIT_INPUT_PTX, Text(kStrong + Reader("first", "x")), "one"));
  EXPECT_CU(CUDA_ERROR_INVALID_SOURCE,
            Add(CU_JIT_INPUT_PTX, Text(kStrong + Reader("second", "x")), "two"));
  EXPECT_STREQ(log_, "error   : Multiple definition of 'x' in 'two', first defined in 'one'\n");
}

TEST_F(LinkerTest, AMissingSymbolIsToldWhenTheLinkCompletes) {
  ASSERT_OK(Add(CU_JIT_INPUT_PTX, Text(".extern .global .u32 x;\n" + Reader("first", "x")), "one"));
  ASSERT_OK(Add(CU_JIT_INPUT_PTX, Text(kEmpty), "two"));
  CUmodule module = nullptr;
  EXPECT_CU(CUDA_ERROR_NO_BINARY_FOR_GPU, Load(&module));
  EXPECT_STREQ(log_, "error   : Undefined reference to 'x' in 'one'\n");
}

TEST_F(LinkerTest, ABrokenTextIsRefusedAtOnce) {
  EXPECT_CU(CUDA_ERROR_INVALID_PTX, Add(CU_JIT_INPUT_PTX, Text(".visible .entry k() {"), "one"));
  EXPECT_NE(std::string(log_).find("line 5"), std::string::npos) << log_;
}

// Two blocks, each of which waits at the grid's barrier for what the other wrote.
constexpr char kExchange[] = R"(
.extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 status) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry exchange(.param .u64 at)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<5>;
  .param .b32 scope;
  .param .b32 flags;
  .param .b32 status;
  .param .b64 handle;
  ld.param.u64 %rd1, [at];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd2, %rd1, %rd2;
  add.u32 %r2, %r1, 7;
  st.global.u32 [%rd2], %r2;
  st.param.b32 [scope], 1;
  call.uni (handle), cudaCGGetIntrinsicHandle, (scope);
  ld.param.b64 %rd3, [handle];
  st.param.b64 [handle], %rd3;
  st.param.b32 [flags], 0;
  call.uni (status), cudaCGSynchronize, (handle, flags);
  xor.b32 %r1, %r1, 1;
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd4, %rd1, %rd4;
  ld.volatile.global.u32 %r3, [%rd4];
  st.global.u32 [%rd2+8], %r3;
  ret;
}
)";

// nvcc adds the device runtime to a program as a library or as a fat binary of relocatable code;
// its PTX is the vendor's driver's.
TEST_F(LinkerTest, TheDeviceRuntimeSynchronisesAGrid) {
  const std::string vendors =
      Text(".extern .func (.param .b32 status) __cuda_syscall_CGS_sync(.param .b64 handle);\n");
  const struct {
    CUjitInputType type;
    std::string bytes;
  } libraries[] = {{CU_JIT_INPUT_LIBRARY, "!<arch>\ncuda_device_runtime.o/"},
                   {CU_JIT_INPUT_FATBINARY, MakeFatbin(vendors, 121)}};
  for (const auto& library : libraries) {
    ASSERT_OK(Add(CU_JIT_INPUT_PTX, Text(kExchange), "in"));
    ASSERT_OK(Add(library.type, library.bytes, "libcudadevrt.a"));
    CUmodule module = nullptr;
    ASSERT_OK(Load(&module)) << log_;
    CUfunction function = nullptr;
    ASSERT_OK(cuModuleGetFunction(&function, module, "exchange"));
    CUdeviceptr at = 0;
    ASSERT_OK(cuMemAlloc(&at, 16));
    void* params[] = {&at};
    ASSERT_OK(cuLaunchCooperativeKernel(function, 2, 1, 1, 32, 1, 1, 0, nullptr, params));
    uint32_t seen[4] = {};
    ASSERT_OK(cuMemcpyDtoH(seen, at, sizeof seen));
    EXPECT_EQ(seen[2], 8u);
    EXPECT_EQ(seen[3], 7u);
    EXPECT_OK(cuMemFree(at));
    ASSERT_OK(cuLinkDestroy(link_));
    ASSERT_OK(cuLinkCreate(2, options_, values_, &link_));
  }
}

}  // namespace
}  // namespace softgpu::testing
