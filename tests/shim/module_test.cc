// Modules, functions, libraries; images; launches that must be refused.
#include <cstring>
#include <string>
#include <vector>

#include "shim/image.h"
#include "tests/shim/fixture.h"

namespace {

using Module = shim_test::InContext;
constexpr char kModulePtx[] = ".version 7.0\n.target sm_80\n";

TEST(Image, LengthsOfEveryKind) {
  EXPECT_EQ(shim::FindImage(kModulePtx).size(), sizeof kModulePtx);
  EXPECT_TRUE(shim::FindImage(nullptr).empty());
  EXPECT_TRUE(shim::FindImage("").empty());
  EXPECT_EQ(shim::FindImage("x").size(), 2u);
  struct {
    uint32_t magic = 0xba55ed50;
    uint16_t version = 1, header_bytes = 16;
    uint64_t entry_bytes = 100;
    char entries[100] = {};
  } container;
  EXPECT_EQ(shim::FindImage(&container).size(), 116u);
  struct {
    uint32_t magic = 0x466243b1, version = 1;
    const void* container;
    void* unused = nullptr;
  } wrapper;
  wrapper.container = &container;
  EXPECT_EQ(shim::FindImage(&wrapper).data(), reinterpret_cast<const std::byte*>(&container));
  container.entry_bytes = ~uint64_t{0};
  EXPECT_TRUE(shim::FindImage(&container).empty());
  wrapper.container = nullptr;
  EXPECT_TRUE(shim::FindImage(&wrapper).empty());
}

TEST_F(Module, BytesTravelOnce) {
  CUmodule first = nullptr, second = nullptr;
  std::string big = kModulePtx;
  big.append(200'000, ' ');
  ASSERT_EQ(local::cuModuleLoadData(&first, big.c_str()), CUDA_SUCCESS);
  const int pieces = CountOf("ModuleBytes");
  ASSERT_EQ(local::cuModuleLoadData(&second, big.c_str()), CUDA_SUCCESS);
  EXPECT_NE(first, second);
  EXPECT_EQ(CountOf("ModuleBytes"), pieces);
}

TEST_F(Module, FailedLoadsFillTheLog) {
  CUmodule module = nullptr;
  char log[100] = "untouched", info[100] = "untouched";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_OPTIMIZATION_LEVEL};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log), info,
                    reinterpret_cast<void*>(sizeof info), reinterpret_cast<void*>(3)};
  shim_test::FailNext("cuModuleLoadDataEx", CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(local::cuModuleLoadDataEx(&module, kModulePtx, 5, options, values),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(log, "line 3: bad");
  EXPECT_STREQ(info, "info");
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), std::strlen(log));
  EXPECT_EQ(module, nullptr);
}

TEST_F(Module, LinksAreMadeByTheWorker) {
  std::string big = kModulePtx;
  big.append(200'000, ' ');
  char log[100] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUlinkState link = nullptr;
  void* image = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(local::cuLinkCreate_v2(2, options, values, &link), CUDA_SUCCESS);
  EXPECT_EQ(local::cuLinkComplete(link, &image, &bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, "/nowhere", 0, nullptr, nullptr),
            CUDA_ERROR_FILE_NOT_FOUND);
  ASSERT_EQ(local::cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, big.data(), big.size(), "kernels.ptx",
                                    0, nullptr, nullptr),
            CUDA_SUCCESS);
  shim_test::FailNext("cuLinkComplete", CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(local::cuLinkComplete(link, &image, &bytes), CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(log, "kernels.ptx: bad");
  ASSERT_EQ(local::cuLinkComplete(link, &image, &bytes), CUDA_SUCCESS);
  ASSERT_EQ(bytes, big.size());
  EXPECT_EQ(std::memcmp(image, big.data(), bytes), 0);
  EXPECT_EQ(local::cuLinkDestroy(link), CUDA_SUCCESS);
  EXPECT_EQ(local::cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Module, FunctionsAreFetchedOnceAndDieWithTheirModule) {
  CUmodule module = nullptr;
  CUfunction function = nullptr, again = nullptr;
  ASSERT_EQ(local::cuModuleLoadData(&module, kModulePtx), CUDA_SUCCESS);
  ASSERT_EQ(local::cuModuleGetFunction(&function, module, "f"), CUDA_SUCCESS);
  const int asked = CountOf("GetFunction");
  ASSERT_EQ(local::cuModuleGetFunction(&again, module, "f"), CUDA_SUCCESS);
  EXPECT_EQ(function, again);
  EXPECT_EQ(CountOf("GetFunction"), asked);
  shim_test::FailNext("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(local::cuModuleGetFunction(&again, module, "g"), CUDA_ERROR_NOT_FOUND);
  size_t offset = 0, bytes = 0;
  EXPECT_EQ(local::cuFuncGetParamInfo(function, 2, &offset, &bytes), CUDA_SUCCESS);
  EXPECT_EQ(offset, 16u);
  EXPECT_EQ(bytes, 3u);
  EXPECT_EQ(local::cuFuncGetParamInfo(function, 3, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  unsigned count = 0;
  EXPECT_EQ(local::cuModuleGetFunctionCount(&count, module), CUDA_SUCCESS);
  EXPECT_EQ(count, 2u);
  ASSERT_EQ(local::cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_EQ(local::cuFuncGetParamInfo(function, 0, &offset, &bytes), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(local::cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Module, LibrariesBecomeModulesWhereTheyAreUsed) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(
      local::cuLibraryLoadData(&library, kModulePtx, nullptr, nullptr, 0, nullptr, nullptr, 0),
      CUDA_SUCCESS);
  ASSERT_EQ(local::cuLibraryGetKernel(&kernel, library, "k"), CUDA_SUCCESS);
  ASSERT_EQ(local::cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
  const char* name = nullptr;
  EXPECT_EQ(local::cuFuncGetName(&name, function), CUDA_SUCCESS);
  EXPECT_STREQ(name, "k");
  uint64_t zero = 0;
  void* params[] = {&zero, &zero, &zero};
  // A kernel may stand for its function.
  EXPECT_EQ(local::cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0,
                                  nullptr, params, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(worker_->launches().back().function, "k");
  EXPECT_EQ(local::cuLibraryUnload(library), CUDA_SUCCESS);
  EXPECT_EQ(local::cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Module, VariablesMayBeCopiedTo) {
  CUmodule module = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  ASSERT_EQ(local::cuModuleLoadData(&module, kModulePtx), CUDA_SUCCESS);
  ASSERT_EQ(local::cuModuleGetGlobal_v2(&address, &bytes, module, "v"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 64u);
  unsigned type = 0;
  EXPECT_EQ(local::cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 63),
            CUDA_SUCCESS);
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  EXPECT_EQ(local::cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 64),
            CUDA_ERROR_INVALID_VALUE);
  CUcontext context = nullptr;
  EXPECT_EQ(local::cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, address),
            CUDA_SUCCESS);
  EXPECT_EQ(context, context_);
}

TEST_F(Module, LaunchesAreCheckedBeforeTheyAreSent) {
  CUmodule module = nullptr;
  CUfunction f = nullptr;
  ASSERT_EQ(local::cuModuleLoadData(&module, kModulePtx), CUDA_SUCCESS);
  ASSERT_EQ(local::cuModuleGetFunction(&f, module, "f"), CUDA_SUCCESS);
  uint64_t zero = 0;
  void* params[] = {&zero, &zero, &zero};
  const int sent = CountOf("Launch");
  EXPECT_EQ(local::cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuLaunchKernel(f, 70000, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuLaunchKernel(f, 1, 1, 1, 513, 1, 1, 0, nullptr, params, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 50000, nullptr, params, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(local::cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, reinterpret_cast<CUstream>(0x1234),
                                  params, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CountOf("Launch"), sent);
}

TEST_F(Module, PackedParametersAndAttributes) {
  CUmodule module = nullptr;
  CUfunction f = nullptr;
  ASSERT_EQ(local::cuModuleLoadData(&module, kModulePtx), CUDA_SUCCESS);
  ASSERT_EQ(local::cuModuleGetFunction(&f, module, "f"), CUDA_SUCCESS);
  unsigned char block[24];
  for (unsigned char& byte : block) byte = static_cast<unsigned char>(&byte - block);
  size_t bytes = sizeof block;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[0].value.cooperative = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[1].value.clusterDim = {2, 1, 1};
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  config.attrs = attributes;
  config.numAttrs = 2;
  ASSERT_EQ(local::cuLaunchKernelEx(&config, f, nullptr, extra), CUDA_SUCCESS);
  ASSERT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
  const shim_test::SeenLaunch launch = worker_->launches().back();
  ASSERT_EQ(launch.params.size(), sizeof block);
  EXPECT_EQ(std::memcmp(launch.params.data(), block, sizeof block), 0);
  ASSERT_EQ(launch.attributes.size(), 2u);
  EXPECT_EQ(launch.attributes[0].id, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  EXPECT_EQ(launch.attributes[1].value.clusterDim.x, 2u);
  bytes = 4;
  EXPECT_EQ(local::cuLaunchKernelEx(&config, f, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
