// Launches that a thread has sent before: the same messages as the first time, but for parameters,
// and refused as soon as the driver would refuse them.
#include "shim/known_launches.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "shim/streams.h"
#include "shim/thread_state.h"
#include "tests/shim/fixture.h"

namespace shim {
namespace {

constexpr char kPtx[] = ".version 7.0\n.target sm_80\n";

class KnownLaunchesTest : public shim_test::InContext {
 protected:
  void SetUp() override {
    InContext::SetUp();
    ASSERT_EQ(local::cuModuleLoadData(&module_, kPtx), CUDA_SUCCESS);
    ASSERT_EQ(local::cuModuleGetFunction(&function_, module_, "f"), CUDA_SUCCESS);
    ASSERT_EQ(local::cuStreamCreate(&stream_, 0), CUDA_SUCCESS);
  }

  CUresult Launch(unsigned shared_bytes = 0) {
    ++value_;
    void* params[] = {&value_, &value_, &value_};
    return local::cuLaunchKernel(function_, 2, 3, 1, 32, 1, 1, shared_bytes, stream_, params,
                                 nullptr);
  }
  bool IsKnown(unsigned shared_bytes = 0) {
    CUcontext current = nullptr;
    EXPECT_EQ(local::cuCtxGetCurrent(&current), CUDA_SUCCESS);
    const LaunchShape shape{.function = function_,
                            .stream = stream_,
                            .grid = {2, 3, 1},
                            .block = {32, 1, 1},
                            .shared_bytes = shared_bytes};
    return ThisThread().launches.Find(shape, {.context = reinterpret_cast<uint64_t>(current)}) !=
           nullptr;
  }
  shim_test::SeenLaunch LastLaunch() {
    EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
    return worker_->launches().back();
  }

  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUstream stream_ = nullptr;
  uint64_t value_ = 0x0101010101010101;
};

TEST_F(KnownLaunchesTest, OnlyParametersDiffer) {
  EXPECT_FALSE(IsKnown());
  ASSERT_EQ(Launch(), CUDA_SUCCESS);
  EXPECT_TRUE(IsKnown());
  const shim_test::SeenLaunch first = LastLaunch();
  ASSERT_EQ(Launch(), CUDA_SUCCESS);
  const shim_test::SeenLaunch second = LastLaunch();
  EXPECT_EQ(second.function, first.function);
  ASSERT_EQ(second.params.size(), first.params.size());
  EXPECT_EQ(std::memcmp(second.params.data(), &value_, sizeof value_), 0);
  EXPECT_EQ(std::memcmp(second.params.data() + 8, &value_, 4), 0);
  for (size_t gap = 12; gap < 16; ++gap) EXPECT_EQ(second.params[gap], std::byte{0});
  EXPECT_EQ(std::memcmp(second.params.data() + 16, &value_, 3), 0);
}

TEST_F(KnownLaunchesTest, AMissingParameterIsRefused) {
  ASSERT_EQ(Launch(), CUDA_SUCCESS);
  const int sent = CountOf("Launch");
  void* params[] = {&value_, nullptr, &value_};
  EXPECT_EQ(local::cuLaunchKernel(function_, 2, 3, 1, 32, 1, 1, 0, stream_, params, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuLaunchKernel(function_, 2, 3, 1, 32, 1, 1, 0, stream_, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CountOf("Launch"), sent);
}

TEST_F(KnownLaunchesTest, AnEndedStreamIsRefused) {
  ASSERT_EQ(Launch(), CUDA_SUCCESS);
  ASSERT_EQ(local::cuStreamDestroy_v2(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Launch(), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(KnownLaunchesTest, AnEndedFunctionIsRefused) {
  ASSERT_EQ(Launch(), CUDA_SUCCESS);
  ASSERT_EQ(local::cuModuleUnload(module_), CUDA_SUCCESS);
  EXPECT_EQ(Launch(), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(KnownLaunchesTest, AnEndedLibraryIsRefused) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  ASSERT_EQ(local::cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(local::cuLibraryGetKernel(&kernel, library, "f"), CUDA_SUCCESS);
  function_ = reinterpret_cast<CUfunction>(kernel);
  ASSERT_EQ(Launch(), CUDA_SUCCESS);
  EXPECT_TRUE(IsKnown());
  ASSERT_EQ(local::cuLibraryUnload(library), CUDA_SUCCESS);
  EXPECT_EQ(Launch(), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(KnownLaunchesTest, AnAttributeThatNoLongerAllowsTheLaunchRefusesIt) {
  ASSERT_EQ(Launch(1024), CUDA_SUCCESS);
  ASSERT_TRUE(IsKnown(1024));
  ASSERT_EQ(
      local::cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 512),
      CUDA_SUCCESS);
  EXPECT_EQ(Launch(1024), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Launch(512), CUDA_SUCCESS);
}

TEST_F(KnownLaunchesTest, StreamZeroIsTheThreadsOwnWhereTheProgramSaysSo) {
  ASSERT_EQ(local::cuStreamDestroy_v2(stream_), CUDA_SUCCESS);
  stream_ = nullptr;
  ASSERT_EQ(Launch(), CUDA_SUCCESS);
  const CUstream legacy = LastLaunch().stream;
  for (int i = 0; i < 2; ++i) {
    {
      const PerThreadDefault own;
      ASSERT_EQ(Launch(), CUDA_SUCCESS);
    }
    EXPECT_NE(LastLaunch().stream, legacy);
    ASSERT_EQ(Launch(), CUDA_SUCCESS);
    EXPECT_EQ(LastLaunch().stream, legacy);
  }
}

TEST_F(KnownLaunchesTest, AnotherContextIsAnotherLaunch) {
  ASSERT_EQ(Launch(), CUDA_SUCCESS);
  CUcontext other = nullptr;
  ASSERT_EQ(local::cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  EXPECT_FALSE(IsKnown());
  ASSERT_EQ(local::cuCtxDestroy_v2(other), CUDA_SUCCESS);
  EXPECT_EQ(Launch(), CUDA_SUCCESS);
}

TEST_F(KnownLaunchesTest, AThreadKnowsItsOwnLaunchesAlone) {
  ASSERT_EQ(Launch(), CUDA_SUCCESS);
  std::thread([&] {
    ASSERT_EQ(local::cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_FALSE(IsKnown());
    EXPECT_EQ(Launch(), CUDA_SUCCESS);
    EXPECT_TRUE(IsKnown());
  }).join();
  EXPECT_TRUE(IsKnown());
}

// Many more than a thread keeps: each is sent whole, known or not.
TEST_F(KnownLaunchesTest, OnesThatTakeEachOthersPlacesAreSentAsTheyAre) {
  for (int round = 0; round < 2; ++round) {
    for (unsigned grid = 1; grid <= 1000; ++grid) {
      uint64_t value = grid;
      void* params[] = {&value, &value, &value};
      ASSERT_EQ(local::cuLaunchKernel(function_, grid, 1, 1, 1, 1, 1, 0, stream_, params, nullptr),
                CUDA_SUCCESS);
    }
  }
  EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
  const std::vector<shim_test::SeenLaunch> launches = worker_->launches();
  ASSERT_GE(launches.size(), 2000u);
  for (size_t i = 0; i < 2000; ++i) {
    const shim_test::SeenLaunch& launch = launches[launches.size() - 2000 + i];
    const uint64_t grid = i % 1000 + 1;
    EXPECT_EQ(launch.grid[0], grid);
    EXPECT_EQ(std::memcmp(launch.params.data(), &grid, sizeof grid), 0);
  }
}

}  // namespace
}  // namespace shim
