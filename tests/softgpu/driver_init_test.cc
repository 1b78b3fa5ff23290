// Initialisation, devices, errors, entry points, the error log.
#include <dlfcn.h>

#include <cstring>
#include <set>
#include <string>

#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

TEST(InitTest, VersionAndDevices) {
  int version = 0, count = 0;
  EXPECT_OK(cuDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
  ASSERT_OK(cuInit(0));
  ASSERT_OK(cuInit(0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuInit(1));
  ASSERT_OK(cuDeviceGetCount(&count));
  EXPECT_EQ(count, 1);
  char name[64];
  ASSERT_OK(cuDeviceGetName(name, sizeof name, 0));
  EXPECT_STREQ(name, "Laneway Software GPU");
  size_t bytes = 0;
  ASSERT_OK(cuDeviceTotalMem(&bytes, 0));
  EXPECT_EQ(bytes, size_t{4} << 30);
  CUdevice device = 7;
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 1));
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(name, sizeof name, 1));
}

TEST(InitTest, EveryAttributeAnswers) {
  ASSERT_OK(cuInit(0));
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    int value = -7;
    EXPECT_OK(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), 0)) << i;
    EXPECT_NE(value, -7) << i;
  }
  int value = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0));
  ASSERT_OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  EXPECT_EQ(value, 8);
  ASSERT_OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(value, 8);
}

TEST(InitTest, PciBusIdBothWays) {
  ASSERT_OK(cuInit(0));
  char id[32];
  ASSERT_OK(cuDeviceGetPCIBusId(id, sizeof id, 0));
  CUdevice device = 7;
  ASSERT_OK(cuDeviceGetByPCIBusId(&device, id));
  EXPECT_EQ(device, 0);
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&device, "0000:99:00.0"));
}

TEST(InitTest, ErrorsHaveNames) {
  const char* text = nullptr;
  ASSERT_OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
  ASSERT_OK(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
  EXPECT_STREQ(text, "invalid argument");
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(static_cast<CUresult>(12345), &text));
}

void* Proc(const char* symbol, int version, cuuint64_t flags,
           CUdriverProcAddressQueryResult* status) {
  void* address = nullptr;
  EXPECT_OK(cuGetProcAddress(symbol, &address, version, flags, status));
  return address;
}

TEST(ProcAddressTest, VersionsAndStreams) {
  CUdriverProcAddressQueryResult status;
  const auto symbol = [](const char* name) { return dlsym(RTLD_DEFAULT, name); };
  EXPECT_EQ(Proc("cuMemAlloc", 12000, 0, &status), symbol("cuMemAlloc_v2"));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_EQ(Proc("cuMemAlloc", 3010, 0, &status), symbol("cuMemAlloc"));
  EXPECT_EQ(Proc("cuCtxCreate", 12000, 0, &status), symbol("cuCtxCreate_v3"));
  EXPECT_EQ(Proc("cuCtxCreate", 13000, 0, &status), symbol("cuCtxCreate_v4"));
  EXPECT_EQ(Proc("cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status),
            symbol("cuLaunchKernel_ptsz"));
  EXPECT_EQ(Proc("cuMemcpyHtoD", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status),
            symbol("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(Proc("cuInit", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status),
            symbol("cuInit"));
  EXPECT_EQ(Proc("cuGetProcAddress", 13000, 0, &status), symbol("cuGetProcAddress_v2"));
  EXPECT_EQ(Proc("cuLibraryLoadData", 11000, 0, &status), nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(Proc("cuMemAlloc_v2", 13000, 0, &status), nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  void* address = nullptr;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &address, 13010, 0, nullptr));
}

TEST(ErrorLogTest, CallbackMemoryAndIterator) {
  ASSERT_OK(cuInit(0));
  std::string seen;
  const CUlogsCallback append = [](void* data, CUlogLevel, char* message, size_t bytes) {
    static_cast<std::string*>(data)->append(message, bytes);
  };
  CUlogsCallbackHandle handle = nullptr;
  ASSERT_OK(cuLogsRegisterCallback(append, &seen, &handle));
  CUlogIterator iterator = 0;
  ASSERT_OK(cuLogsCurrent(&iterator, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(nullptr) == CUDA_ERROR_INVALID_CONTEXT
                                           ? cuStreamDestroy(nullptr)
                                           : CUDA_SUCCESS);
  EXPECT_NE(seen.find("cuStreamDestroy_v2: "), std::string::npos) << seen;
  char text[4096];
  size_t bytes = sizeof text;
  ASSERT_OK(cuLogsDumpToMemory(&iterator, text, &bytes, 0));
  EXPECT_NE(std::string(text, bytes).find("cuStreamDestroy_v2: "), std::string::npos);
  bytes = sizeof text;
  ASSERT_OK(cuLogsDumpToMemory(&iterator, text, &bytes, 0));
  EXPECT_EQ(bytes, 0u) << text;
  ASSERT_OK(cuLogsUnregisterCallback(handle));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(handle));
}

TEST(ExportTest, EveryNameOfTheTableIsThere) {
#define CALL(fn, ...) EXPECT_NE(dlsym(RTLD_DEFAULT, #fn), nullptr) << #fn;
#include "ipc/calls/driver.inc"
#undef CALL
}

TEST(ExportTest, UnimplementedCallsSaySo) {
  ASSERT_OK(cuInit(0));
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuGraphicsMapResources(0, nullptr, nullptr));
  char log[4096] = "";
  size_t bytes = sizeof log;
  ASSERT_OK(cuLogsDumpToMemory(nullptr, log, &bytes, 0));
  EXPECT_NE(std::string(log).find("the device draws nothing"), std::string::npos) << log;
  const void* table = this;
  CUuuid id = {};
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuGetExportTable(&table, &id));
  EXPECT_EQ(table, nullptr);
}

}  // namespace
}  // namespace softgpu::testing
