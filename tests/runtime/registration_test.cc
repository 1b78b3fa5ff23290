// What nvcc's output does when it is loaded, and what that costs.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/runtime/fake_driver.h"

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                            dim3*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int);
char __cudaInitModule(void**);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, cudaStream_t);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t*, const void*, void**);
}

namespace {

// The layout of what nvcc passes to __cudaRegisterFatBinary.
struct Wrapper {
  int magic = 0x466243b1;
  int version = 1;
  const void* data;
  void* unused = nullptr;
};

void Register(void** handle, const char* host) {
  __cudaRegisterFunction(handle, host, nullptr, "kernel", -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
}

cudaError_t Launch(const char* host) {
  return cudaLaunchKernel(host, dim3(1), dim3(1), nullptr, 0, nullptr);
}

TEST(Registration, CostsNoDriverCallUntilFirstUse) {
  constexpr int kBinaries = 1000, kKernels = 60, kVariables = 40;
  static char hosts[kBinaries][kKernels + kVariables];
  std::vector<Wrapper> wrappers(kBinaries);
  std::vector<void**> handles;
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  const unsigned long before = fake_calls();
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  for (int b = 0; b < kBinaries; ++b) {
    wrappers[b].data = &wrappers[b];
    handles.push_back(__cudaRegisterFatBinary(&wrappers[b]));
    for (int k = 0; k < kKernels; ++k) Register(handles[b], &hosts[b][k]);
    for (int v = 0; v < kVariables; ++v) {
      __cudaRegisterVar(handles[b], &hosts[b][kKernels + v], nullptr, "variable", 0, 4, 0, 0);
    }
    __cudaRegisterFatBinaryEnd(handles[b]);
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("registered %d kernels and variables in %.1f ms\n",
              kBinaries * (kKernels + kVariables), took.count());
  EXPECT_EQ(fake_calls(), before);

  const unsigned long loads = fake_calls_of("cuModuleLoadData");
  EXPECT_EQ(Launch(&hosts[500][3]), cudaSuccess);
  EXPECT_EQ(Launch(&hosts[500][4]), cudaSuccess);
  EXPECT_EQ(Launch(&hosts[500][3]), cudaSuccess);
  EXPECT_EQ(fake_calls_of("cuModuleLoadData"), loads + 1);

  const unsigned long unloads = fake_calls_of("cuModuleUnload");
  for (void** handle : handles) __cudaUnregisterFatBinary(handle);
  EXPECT_EQ(fake_calls_of("cuModuleUnload"), unloads + 1);
}

// One fat binary with a kernel and variables, registered as long as the object lives.
class OneBinary {
 public:
  OneBinary() {
    wrapper_.data = &wrapper_;
    handle_ = __cudaRegisterFatBinary(&wrapper_);
    Register(handle_, &kernel);
    __cudaRegisterVar(handle_, &variable, nullptr, "variable", 0, 64, 0, 0);
    __cudaRegisterManagedVar(handle_, &managed, nullptr, "managed", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(handle_);
  }
  ~OneBinary() { __cudaUnregisterFatBinary(handle_); }

  void** handle() const { return handle_; }

  char kernel = 0;
  char variable = 0;
  void* managed = nullptr;

 private:
  Wrapper wrapper_;
  void** handle_;
};

TEST(Registration, AResetDeviceLoadsAgain) {
  OneBinary binary;
  ASSERT_EQ(Launch(&binary.kernel), cudaSuccess);
  const unsigned long loads = fake_calls_of("cuModuleLoadData");
  const unsigned long unloads = fake_calls_of("cuModuleUnload");
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(Launch(&binary.kernel), cudaSuccess);
  EXPECT_EQ(fake_calls_of("cuModuleLoadData"), loads + 1);
  EXPECT_EQ(fake_calls_of("cuModuleUnload"), unloads);  // went with the context
}

// The wrapper of a program with separable compilation: a container of linked code, and one
// container for each file.
class LinkedBinary {
 public:
  // `linked_bytes`: of the entries that the linker made.
  explicit LinkedBinary(uint64_t linked_bytes) {
    linked_.entries_bytes = linked_bytes;
    wrapper_.version = 2;
    wrapper_.data = &linked_;
    wrapper_.unused = files_;
    handle_ = __cudaRegisterFatBinary(&wrapper_);
    Register(handle_, &kernel);
    __cudaRegisterFatBinaryEnd(handle_);
  }
  ~LinkedBinary() { __cudaUnregisterFatBinary(handle_); }

  char kernel = 0;

 private:
  struct Container {
    uint32_t magic = 0xBA55ED50;
    uint16_t version = 1, header_bytes = 16;
    uint64_t entries_bytes = 0;
  };
  Container linked_, first_{.entries_bytes = 24}, second_{.entries_bytes = 40};
  const void* files_[3] = {&first_, &second_, nullptr};
  Wrapper wrapper_;
  void** handle_;
};

TEST(Registration, FilesThatNothingLinkedYetAreLinkedAtFirstUse) {
  LinkedBinary binary(0);
  const unsigned long links = fake_calls_of("cuLinkComplete");
  const unsigned long tries = fake_calls_of("cuModuleLoadDataEx");
  const unsigned long inputs = fake_calls_of("cuLinkAddData_v2");
  EXPECT_EQ(Launch(&binary.kernel), cudaSuccess);
  EXPECT_EQ(Launch(&binary.kernel), cudaSuccess);
  EXPECT_EQ(fake_calls_of("cuModuleLoadDataEx"), tries);  // there is nothing to try
  EXPECT_EQ(fake_calls_of("cuLinkComplete"), links + 1);
  EXPECT_EQ(fake_calls_of("cuLinkAddData_v2"), inputs + 2);
  EXPECT_EQ(fake_linked_bytes(), 16u + 24 + 16 + 40);
  EXPECT_EQ(fake_calls_of("cuLinkDestroy"), fake_calls_of("cuLinkCreate_v2"));
}

TEST(Registration, LinkedCodeThatTheDeviceRunsIsTaken) {
  LinkedBinary binary(8);
  const unsigned long links = fake_calls_of("cuLinkCreate_v2");
  EXPECT_EQ(Launch(&binary.kernel), cudaSuccess);
  EXPECT_EQ(fake_calls_of("cuLinkCreate_v2"), links);
}

TEST(Registration, LinkedCodeOfAnotherDeviceIsLinkedAnew) {
  LinkedBinary binary(8);
  const unsigned long links = fake_calls_of("cuLinkComplete");
  fake_fail("cuModuleLoadDataEx", CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(Launch(&binary.kernel), cudaSuccess);
  fake_fail("cuModuleLoadDataEx", CUDA_SUCCESS);
  EXPECT_EQ(fake_calls_of("cuLinkComplete"), links + 1);
}

TEST(Registration, AFailedLinkIsTheErrorOfTheFirstUse) {
  LinkedBinary binary(0);
  fake_fail("cuLinkComplete", CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(Launch(&binary.kernel), cudaErrorNoKernelImageForDevice);
  fake_fail("cuLinkComplete", CUDA_SUCCESS);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(fake_calls_of("cuLinkDestroy"), fake_calls_of("cuLinkCreate_v2"));
  EXPECT_EQ(Launch(&binary.kernel), cudaSuccess);
}

TEST(Registration, AKernelIsGoneWithItsFatBinaryAndNotBefore) {
  static char inline_kernel;
  OneBinary first;
  Wrapper second;
  second.data = &second;
  void** const handles[] = {__cudaRegisterFatBinary(&second), __cudaRegisterFatBinary(&second)};
  for (void** handle : handles) Register(handle, &inline_kernel);
  EXPECT_EQ(Launch(&inline_kernel), cudaSuccess);
  __cudaUnregisterFatBinary(handles[0]);
  EXPECT_EQ(Launch(&inline_kernel), cudaSuccess);
  __cudaUnregisterFatBinary(handles[1]);
  EXPECT_EQ(Launch(&inline_kernel), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(Launch(&first.kernel), cudaSuccess);
}

TEST(Registration, ALaunchByHandleIsOneDriverCallBesideTheContextCheck) {
  OneBinary binary;
  cudaKernel_t handle = nullptr;
  const unsigned long before_handle = fake_calls();
  ASSERT_EQ(__cudaGetKernel(&handle, &binary.kernel), cudaSuccess);
  EXPECT_EQ(fake_calls(), before_handle);
  ASSERT_EQ(__cudaLaunchKernel(handle, dim3(1), dim3(1), nullptr, 0, nullptr), cudaSuccess);
  const unsigned long before = fake_calls();
  ASSERT_EQ(__cudaLaunchKernel(handle, dim3(1), dim3(1), nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(fake_calls(), before + 2);  // cuCtxGetCurrent, cuLaunchKernel
  EXPECT_EQ(__cudaLaunchKernel(handle, dim3(0), dim3(1), nullptr, 0, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
}

TEST(Registration, PerThreadVariantsChangeStreamZeroAlone) {
  OneBinary binary;
  cudaKernel_t handle = nullptr;
  ASSERT_EQ(__cudaGetKernel(&handle, &binary.kernel), cudaSuccess);
  ASSERT_EQ(__cudaLaunchKernel_ptsz(handle, dim3(1), dim3(1), nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(fake_launch_stream(), cudaStreamPerThread);
  ASSERT_EQ(__cudaLaunchKernel_ptsz(handle, dim3(1), dim3(1), nullptr, 0, cudaStreamLegacy),
            cudaSuccess);
  EXPECT_EQ(fake_launch_stream(), cudaStreamLegacy);
  cudaLaunchConfig_t config = {};
  config.gridDim = config.blockDim = dim3(1);
  ASSERT_EQ(cudaLaunchKernelExC_ptsz(&config, &binary.kernel, nullptr), cudaSuccess);
  EXPECT_EQ(fake_launch_stream(), cudaStreamPerThread);
  EXPECT_EQ(config.stream, nullptr);
  EXPECT_EQ(cudaLaunchKernelExC_ptsz(nullptr, &binary.kernel, nullptr), cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST(Registration, AFailedLoadIsTheLaunchsErrorAndIsTriedAgain) {
  OneBinary binary;
  fake_fail("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(Launch(&binary.kernel), cudaErrorNoKernelImageForDevice);
  fake_fail("cuModuleLoadData", CUDA_SUCCESS);
  EXPECT_EQ(Launch(&binary.kernel), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
}

TEST(Registration, Variables) {
  OneBinary binary;
  size_t bytes = 0;
  ASSERT_EQ(cudaGetSymbolSize(&bytes, &binary.variable), cudaSuccess);
  EXPECT_EQ(bytes, 64u);
  const int in = 5;
  int out = 0;
  EXPECT_EQ(cudaMemcpyToSymbol(&binary.variable, &in, 4, 60, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpyFromSymbol(&out, &binary.variable, 4, 60, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(out, in);
  EXPECT_EQ(cudaMemcpyToSymbol(&binary.variable, &in, 4, 61, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(&in, &in, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
  void* address = nullptr;
  fake_fail("cuPointerGetAttributes", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cudaGetSymbolAddress(&address, &binary.managed), cudaErrorNotSupported);
  fake_fail("cuPointerGetAttributes", CUDA_SUCCESS);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST(Registration, AManagedVariableIsNamedBeforeItIsTouched) {
  OneBinary binary;
  testing::internal::CaptureStderr();
  fake_fail("cuPointerGetAttributes", CUDA_ERROR_INVALID_VALUE);
  __cudaInitModule(binary.handle());
  fake_fail("cuPointerGetAttributes", CUDA_SUCCESS);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "cudart: managed is not supported: a __managed__ variable can't be shared by host and "
            "device here\n");
  cudaGetLastError();
}

TEST(Registration, AManagedVariableGetsItsAddressBeforeItIsTouched) {
  OneBinary binary;
  __cudaInitModule(binary.handle());
  ASSERT_NE(binary.managed, nullptr);
  void* address = nullptr;
  EXPECT_EQ(cudaGetSymbolAddress(&address, binary.managed), cudaSuccess);
  EXPECT_EQ(address, binary.managed);
}

TEST(Registration, ThreadsMayLaunchWhileOthersLoadLibraries) {
  OneBinary shared;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&shared] {
      for (int round = 0; round < 200; ++round) {
        OneBinary own;
        EXPECT_EQ(Launch(&own.kernel), cudaSuccess);
        EXPECT_EQ(Launch(&shared.kernel), cudaSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Registration, ConfigurationsNest) {
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
  EXPECT_EQ(__cudaPushCallConfiguration(dim3(2), dim3(3), 4, cudaStreamPerThread), 0u);
  EXPECT_EQ(__cudaPushCallConfiguration(dim3(5), dim3(6), 7, nullptr), 0u);
  ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
  EXPECT_EQ(grid.x, 5u);
  ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
  EXPECT_EQ(grid.x, 2u);
  EXPECT_EQ(block.x, 3u);
  EXPECT_EQ(shared, 4u);
  EXPECT_EQ(stream, cudaStreamPerThread);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
            cudaErrorMissingConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMissingConfiguration);
}

}  // namespace
