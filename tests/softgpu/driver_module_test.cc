// Modules and libraries: PTX text, fat binaries, the JIT's log, attributes.
#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <string>
#include <vector>

#include "softgpu/driver/fatbin.h"
#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

using ModuleTest = DriverTest;

std::string Text(const std::string& kernels) { return kHeader + kernels; }

// Rewrites the entry of MakeFatbin's container as a compressed one.
std::string Compressed(const std::string& text, uint64_t flag, const std::string& payload) {
  std::string bytes = MakeFatbin(payload, 80);
  const size_t entry = kFatbinHeaderBytes;
  const uint32_t payload_bytes = static_cast<uint32_t>(payload.size());
  const uint64_t text_bytes = text.size();
  std::memcpy(bytes.data() + entry + 16, &payload_bytes, 4);
  std::memcpy(bytes.data() + entry + 40, &flag, 8);
  std::memcpy(bytes.data() + entry + 56, &text_bytes, 8);
  return bytes;
}

std::string Lz4(const std::string& text) {
  std::string out(LZ4_compressBound(static_cast<int>(text.size())), '\0');
  out.resize(LZ4_compress_default(text.data(), out.data(), static_cast<int>(text.size()),
                                  static_cast<int>(out.size())));
  return out;
}

std::string Zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

TEST_F(ModuleTest, FatBinariesOfEveryCompression) {
  const std::string text = Text(kVectorAdd);
  const std::string images[] = {MakeFatbin(text, 80), Compressed(text, 0x2000, Lz4(text)),
                                Compressed(text, 0x8000, Zstd(text))};
  for (const std::string& image : images) {
    const struct {
      uint32_t magic, version;
      const void* data;
      const void* unused;
    } wrapper = {kFatbinWrapperMagic, 1, image.data(), nullptr};
    for (const void* start :
         {static_cast<const void*>(image.data()), static_cast<const void*>(&wrapper)}) {
      CUmodule module = nullptr;
      CUfunction function = nullptr;
      ASSERT_OK(cuModuleLoadData(&module, start));
      EXPECT_OK(cuModuleGetFunction(&function, module, "vector_add"));
      EXPECT_OK(cuModuleUnload(module));
    }
  }
}

TEST_F(ModuleTest, DamagedFatBinariesAreRefused) {
  const std::string text = Text(kVectorAdd);
  const std::string image = Compressed(text, 0x8000, Zstd(text));
  for (const size_t at : {16u + 4u, 16u + 16u, 16u + 56u, 16u + 64u}) {
    std::string damaged = image;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    CUmodule module = nullptr;
    EXPECT_CU(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, damaged.data())) << at;
  }
}

TEST_F(ModuleTest, MachineCodeIsRefused) {
  std::string elf(64, '\0');
  std::memcpy(elf.data(), "\177ELF\2\1\1", 7);
  CUmodule module = nullptr;
  EXPECT_CU(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, elf.data()));
  EXPECT_CU(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, "nonsense"));
}

TEST_F(ModuleTest, MachineCodeIsSaidOnceWithTheRemedy) {
  std::string elf(64, '\0');
  std::memcpy(elf.data(), "\177ELF\2\1\1", 7);
  char log[1024] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  ::testing::internal::CaptureStderr();
  EXPECT_CU(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, elf.data()));
  EXPECT_CU(CUDA_ERROR_NO_BINARY_FOR_GPU,
            cuModuleLoadDataEx(&module, elf.data(), 2, options, values));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(said, std::string("softgpu: ") + log + "\n");
  EXPECT_NE(said.find("wrap the step in torch.compile"), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
}

TEST_F(ModuleTest, ErrorsOfPtxAreInTheLogWithTheirLine) {
  char error[512] = "", info[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {error, reinterpret_cast<void*>(sizeof error), info,
                    reinterpret_cast<void*>(sizeof info)};
  CUmodule module = nullptr;
  const std::string text = Text(".visible .entry bad()\n{\n  frobnicate.u32 %r1;\n  ret;\n}\n");
  EXPECT_CU(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, text.c_str(), 4, options, values));
  EXPECT_NE(std::string(error).find("line 6"), std::string::npos) << error;
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), std::strlen(error) + 1);
  EXPECT_STREQ(info, "");
}

TEST_F(ModuleTest, FunctionsAndTheirLayout) {
  const CUmodule module = Load(std::string(kVectorAdd) + kEmpty);
  unsigned count = 0;
  ASSERT_OK(cuModuleGetFunctionCount(&count, module));
  ASSERT_EQ(count, 2u);
  CUfunction functions[2];
  ASSERT_OK(cuModuleEnumerateFunctions(functions, 2, module));
  const char* name = nullptr;
  ASSERT_OK(cuFuncGetName(&name, functions[0]));
  EXPECT_STREQ(name, "vector_add");
  size_t offset = 0, bytes = 0;
  ASSERT_OK(cuFuncGetParamInfo(functions[0], 3, &offset, &bytes));
  EXPECT_EQ(offset, 24u);
  EXPECT_EQ(bytes, 4u);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(functions[0], 4, &offset, &bytes));
  CUmodule owner = nullptr;
  ASSERT_OK(cuFuncGetModule(&owner, functions[1]));
  EXPECT_EQ(owner, module);
  int value = 0;
  ASSERT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, functions[0]));
  EXPECT_EQ(value, 1024);
  ASSERT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, functions[0]));
  EXPECT_EQ(value, 80);
  int blocks = 0, grid = 0, block = 0;
  ASSERT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, functions[0], 256, 0));
  EXPECT_EQ(blocks, 8);
  ASSERT_OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, functions[0], nullptr, 0, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 16);
}

TEST_F(ModuleTest, LibrariesLoadIntoEveryContext) {
  const std::string text = Text(std::string(".visible .global .u32 seen = 5;\n") + kStore);
  CUlibrary library = nullptr;
  ASSERT_OK(cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  ASSERT_OK(cuLibraryGetKernel(&kernel, library, "store"));
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "absent"));
  unsigned count = 0;
  ASSERT_OK(cuLibraryGetKernelCount(&count, library));
  EXPECT_EQ(count, 1u);
  CUdeviceptr here = 0, there = 0;
  ASSERT_OK(cuLibraryGetGlobal(&here, nullptr, library, "seen"));
  CUfunction function = nullptr, other_function = nullptr;
  ASSERT_OK(cuKernelGetFunction(&function, kernel));
  unsigned value = 8;
  ASSERT_OK(Launch(function, {&here, &value}));
  ASSERT_OK(Launch(reinterpret_cast<CUfunction>(kernel), {&here, &value}))
      << "a kernel in a function's clothes";
  CUcontext other = nullptr;
  ASSERT_OK(cuCtxCreate(&other, nullptr, 0, 0));
  ASSERT_OK(cuLibraryGetGlobal(&there, nullptr, library, "seen"));
  EXPECT_NE(here, there);
  ASSERT_OK(cuKernelGetFunction(&other_function, kernel));
  EXPECT_NE(function, other_function);
  unsigned seen = 0;
  ASSERT_OK(cuMemcpyDtoH(&seen, there, 4));
  EXPECT_EQ(seen, 5u);
  ASSERT_OK(cuCtxDestroy(other));
  CUmodule module = nullptr;
  ASSERT_OK(cuLibraryGetModule(&module, library));
  EXPECT_CU(CUDA_ERROR_NOT_PERMITTED, cuModuleUnload(module));
  ASSERT_OK(cuLibraryUnload(library));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuKernelGetFunction(&function, kernel));
}

}  // namespace
}  // namespace softgpu::testing
