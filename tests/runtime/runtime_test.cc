// The runtime over a driver that only counts and answers as told: errors, contexts, properties.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

#include "tests/runtime/fake_driver.h"

extern "C" cudaError_t cudaMemcpy_ptds(void*, const void*, size_t, cudaMemcpyKind);

namespace {

// Runs `body` in a thread of its own, so that errors it leaves behind stay there.
template <class Body>
void InThread(Body body) {
  std::thread(body).join();
}

TEST(RuntimeErrors, EveryDriverResultWithARuntimeNameKeepsItsNumber) {
  InThread([] {
    for (int code = 1; code < 1000; ++code) {
      fake_fail("cuCtxSynchronize", static_cast<CUresult>(code));
      const cudaError_t error = cudaDeviceSynchronize();
      const std::string name = cudaGetErrorName(static_cast<cudaError_t>(code));
      if (name == "unrecognized error code") {
        EXPECT_EQ(error, cudaErrorUnknown) << code;
      } else {
        EXPECT_EQ(error, code);
      }
    }
    fake_fail("cuCtxSynchronize", CUDA_SUCCESS);
  });
}

TEST(RuntimeErrors, ResultsOfTheDriverAloneBecomeUnknown) {
  InThread([] {
    fake_fail("cuCtxSynchronize", CUDA_ERROR_CONTEXT_ALREADY_CURRENT);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorUnknown);
    fake_fail("cuCtxSynchronize", CUDA_SUCCESS);
  });
}

TEST(RuntimeErrors, LastErrorIsReturnedOnceAndPeekedOften) {
  InThread([] {
    EXPECT_EQ(cudaSetDevice(7), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);  // success forgets nothing
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  });
}

TEST(RuntimeErrors, AnUnusableContextStaysAnError) {
  InThread([] {
    fake_fail("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    fake_fail("cuCtxSynchronize", CUDA_SUCCESS);
    EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  });
  InThread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); });
}

TEST(RuntimeErrors, RefusedCallsSayNotSupportedByTheirResultAlone) {
  InThread([] {
    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaGraphicsMapResources(0, nullptr, nullptr), cudaErrorNotSupported);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // why: CUDA_LOG_FILE
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
  });
}

TEST(RuntimeErrors, AFunctionThatTheDriverLacksNeedsANewerDriver) {
  InThread([] {
    int least = 0, greatest = 0;
    EXPECT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest),
              cudaErrorCallRequiresNewerDriver);
  });
}

TEST(RuntimeErrors, NamesAndTexts) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(-5)), "unrecognized error code");
}

TEST(RuntimeContexts, VersionsNeedNone) {
  int version = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, CUDART_VERSION);
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, CUDA_VERSION);
}

TEST(RuntimeContexts, ThePrimaryIsRetainedOnceForAllThreads) {
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  const unsigned long retained = fake_calls_of("cuDevicePrimaryCtxRetain");
  for (int i = 0; i < 4; ++i) InThread([] { EXPECT_EQ(cudaFree(nullptr), cudaSuccess); });
  EXPECT_EQ(fake_calls_of("cuDevicePrimaryCtxRetain"), retained);
}

TEST(RuntimeContexts, AContextOfTheDriverInterfaceIsHonoured) {
  InThread([] {
    int storage = 0;
    const CUcontext own = reinterpret_cast<CUcontext>(&storage);
    ASSERT_EQ(cuCtxSetCurrent(own), CUDA_SUCCESS);
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
    CUcontext now = nullptr;
    ASSERT_EQ(cuCtxGetCurrent(&now), CUDA_SUCCESS);
    EXPECT_EQ(now, own);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);  // asks for the primary one
    ASSERT_EQ(cuCtxGetCurrent(&now), CUDA_SUCCESS);
    EXPECT_NE(now, own);
  });
}

TEST(RuntimeContexts, AResetByOneThreadReachesTheOthers) {
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  CUcontext before = nullptr, after = nullptr;
  ASSERT_EQ(cuCtxGetCurrent(&before), CUDA_SUCCESS);
  InThread([] { EXPECT_EQ(cudaDeviceReset(), cudaSuccess); });
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  ASSERT_EQ(cuCtxGetCurrent(&after), CUDA_SUCCESS);
  EXPECT_NE(before, after);
}

TEST(RuntimeDevices, EveryPropertyIsFilled) {
  cudaDeviceProp prop;
  ASSERT_EQ(cudaGetDeviceProperties(&prop, 0), cudaSuccess);
  EXPECT_STREQ(prop.name, "fake");
  EXPECT_EQ(prop.uuid.bytes[15], 7);
  EXPECT_EQ(prop.warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  EXPECT_EQ(prop.maxGridSize[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  EXPECT_EQ(prop.gpuPciSubsystemID, unsigned{CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID});
  // The fake driver reads every attribute as its own number, so a zero is a property left out.
  const char* const at = reinterpret_cast<const char*>(&prop);
  for (size_t i = offsetof(cudaDeviceProp, totalGlobalMem); i < offsetof(cudaDeviceProp, reserved);
       i += sizeof(int)) {
    int value = 0;
    std::memcpy(&value, at + i, sizeof value);
    const bool high_half_or_padding = value == 0 && i >= sizeof(int) && [&] {
      for (const size_t wide :
           {offsetof(cudaDeviceProp, totalGlobalMem), offsetof(cudaDeviceProp, sharedMemPerBlock),
            offsetof(cudaDeviceProp, memPitch), offsetof(cudaDeviceProp, totalConstMem),
            offsetof(cudaDeviceProp, textureAlignment),
            offsetof(cudaDeviceProp, texturePitchAlignment),
            offsetof(cudaDeviceProp, surfaceAlignment),
            offsetof(cudaDeviceProp, sharedMemPerMultiprocessor),
            offsetof(cudaDeviceProp, sharedMemPerBlockOptin),
            offsetof(cudaDeviceProp, reservedSharedMemPerBlock)}) {
        if (i == wide + sizeof(int) || i + sizeof(int) == wide) return true;
      }
      return false;
    }();
    EXPECT_TRUE(value != 0 || high_half_or_padding) << "at byte " << i;
  }
}

TEST(RuntimeDevices, AttributesKeepTheirNumbers) {
  int value = 0;
  for (int attribute = 1; attribute < cudaDevAttrMax; ++attribute) {
    ASSERT_EQ(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(attribute), 0),
              cudaSuccess);
    EXPECT_EQ(value, attribute);
  }
  InThread([&] {
    EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 3), cudaErrorInvalidDevice);
  });
}

TEST(RuntimeMemory, NothingIsAllocatedForNothing) {
  void* pointer = &pointer;
  const unsigned long before = fake_calls_of("cuMemAlloc_v2");
  EXPECT_EQ(cudaMalloc(&pointer, 0), cudaSuccess);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(fake_calls_of("cuMemAlloc_v2"), before);
}

TEST(RuntimeMemory, CopiesGoBothWays) {
  const char text[] = "copied";
  char back[sizeof text] = "";
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, sizeof text), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(device, text, sizeof text, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(back, device, sizeof text, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_STREQ(back, text);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  InThread([&] {
    EXPECT_EQ(cudaMemcpy(back, text, 1, static_cast<cudaMemcpyKind>(9)),
              cudaErrorInvalidMemcpyDirection);
  });
}

TEST(RuntimeStreams, ThePerThreadVariantWaitsForItsOwnStream) {
  char target = 0;
  const char source = 1;
  const unsigned long before = fake_calls_of("wait for the per-thread stream");
  EXPECT_EQ(cudaMemcpy_ptds(&target, &source, 1, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(fake_calls_of("wait for the per-thread stream"), before + 1);
  EXPECT_EQ(fake_calls_of("wait for a stream"), 0u);
  EXPECT_EQ(target, source);
}

}  // namespace
