// Results that are sent for before they are asked for: when, and that nothing stale is ever seen.
#include <functional>

#include "shim/client.h"
#include "tests/shim/fixture.h"

namespace {

class FetchAhead : public shim_test::InContext {
 protected:
  static void SetUpTestSuite() { shim_test::FakeWorker::Start(0, ipc::OwnTables(), 1); }

  void SetUp() override {
    InContext::SetUp();
    ASSERT_EQ(local::cuMemAlloc_v2(&result_, 4096), CUDA_SUCCESS);
  }

  void Write(uint32_t value, CUdeviceptr to) {
    ASSERT_EQ(local::cuMemcpyHtoD_v2(to, &value, sizeof value), CUDA_SUCCESS);
  }
  uint32_t Read(CUdeviceptr from) {
    uint32_t value = 0;
    EXPECT_EQ(local::cuMemcpyDtoH_v2(&value, from, sizeof value), CUDA_SUCCESS);
    return value;
  }
  // As loops do: work, a wait, the result.
  void Round(uint32_t value) {
    Write(value, result_);
    EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(Read(result_), value);
  }
  void Learn() {
    Round(1);
    Round(2);
  }
  // How many copies out were asked for, and sent ahead, by `body`.
  std::pair<int, int> Sent(const std::function<void()>& body) {
    const int copies = CountOf("CopyStagedOut"), ahead = CountOf("FetchAhead");
    body();
    return {CountOf("CopyStagedOut") - copies, CountOf("FetchAhead") - ahead};
  }

  CUdeviceptr result_ = 0;
};

using Counts = std::pair<int, int>;

TEST_F(FetchAhead, AfterTwoWaitsTheResultComesWithTheThird) {
  EXPECT_EQ(Sent([&] { Learn(); }), (Counts{2, 0}));
  EXPECT_EQ(Sent([&] {
              for (uint32_t i = 10; i < 20; ++i) Round(i);
            }),
            (Counts{0, 10}));
}

TEST_F(FetchAhead, IterationsAreFoundInWhatTheProgramDoes) {
  Learn();
  const uint64_t before = shim::Client::Process().pipeline().operations();
  Round(3);
  EXPECT_EQ(shim::Client::Process().pipeline().operations() - before, 2u);
}

TEST_F(FetchAhead, WhatWasWrittenSinceIsSeen) {
  Learn();
  Write(3, result_);
  ASSERT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
  Write(4, result_);
  EXPECT_EQ(Read(result_), 4u);
  Write(5, result_);
  Write(6, result_ + 8);
  ASSERT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemcpyDtoD_v2(result_, result_ + 8, 4), CUDA_SUCCESS);
  EXPECT_EQ(Read(result_), 6u);
}

TEST_F(FetchAhead, AnotherResultIsCopied) {
  Learn();
  Write(3, result_);
  Write(4, result_ + 4);
  ASSERT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(Read(result_ + 4), 4u);
  EXPECT_EQ(Read(result_), 3u);
  EXPECT_EQ(Sent([&] { Round(5); }), (Counts{1, 0}));  // it has to be learnt again
}

TEST_F(FetchAhead, WaitsThatNothingFollowsEndIt) {
  Learn();
  const auto wait = [&] {
    Write(7, result_);
    EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
  };
  EXPECT_EQ(Sent(wait), (Counts{0, 1}));
  EXPECT_EQ(Sent(wait), (Counts{0, 1}));  // only now it is known of the first
  EXPECT_EQ(Sent(wait), (Counts{0, 0}));
}

TEST_F(FetchAhead, AWorkerMayRefuse) {
  Learn();
  shim_test::FailNext("cuMemcpyDtoH_v2", CUDA_ERROR_NOT_READY);
  EXPECT_EQ(Sent([&] { Round(3); }), (Counts{1, 1}));
  EXPECT_EQ(Sent([&] { Round(4); }), (Counts{0, 1}));
}

TEST_F(FetchAhead, FreedMemoryIsNotSentFor) {
  Learn();
  ASSERT_EQ(local::cuMemFree_v2(result_), CUDA_SUCCESS);
  CUdeviceptr other = 0;
  ASSERT_EQ(local::cuMemAlloc_v2(&other, 4 << 20), CUDA_SUCCESS);
  EXPECT_EQ(Sent([&] {
              Write(1, other);
              EXPECT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
            }),
            (Counts{0, other == result_ ? 1 : 0}));
  uint32_t value = 0;
  if (other != result_) {
    EXPECT_EQ(local::cuMemcpyDtoH_v2(&value, result_, 4), CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_F(FetchAhead, OtherStreamsMustBeIdle) {
  CUstream other = nullptr;
  ASSERT_EQ(local::cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  Learn();
  const uint32_t value = 9;
  ASSERT_EQ(local::cuMemcpyHtoDAsync_v2(result_ + 8, &value, 4, other), CUDA_SUCCESS);
  Write(3, result_);
  EXPECT_EQ(Sent([&] { EXPECT_EQ(local::cuStreamSynchronize(nullptr), CUDA_SUCCESS); }),
            (Counts{0, 0}));
  EXPECT_EQ(Read(result_), 3u);
  ASSERT_EQ(local::cuStreamSynchronize(other), CUDA_SUCCESS);
  Learn();
  EXPECT_EQ(Sent([&] { Round(4); }), (Counts{0, 1}));
  EXPECT_EQ(local::cuStreamDestroy_v2(other), CUDA_SUCCESS);
}

}  // namespace
