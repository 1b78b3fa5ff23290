// A context on the pretended device, for tests that begin there.
#pragma once

#include <gtest/gtest.h>

#include "shim/driver/local.h"
#include "tests/shim/fake_worker.h"

namespace shim_test {

class InContext : public ::testing::Test {
 protected:
  void SetUp() override {
    worker_ = &FakeWorker::Start();
    ASSERT_EQ(local::cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(local::cuCtxCreate_v2(&context_, 0, 0), CUDA_SUCCESS);
  }
  void TearDown() override { EXPECT_EQ(local::cuCtxDestroy_v2(context_), CUDA_SUCCESS); }

  // How often the worker has been asked for a call of this name. Waits for what was sent before.
  int CountOf(const std::string& name) {
    size_t free = 0, total = 0;
    EXPECT_EQ(local::cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
    return worker_->counts()[name];
  }

  FakeWorker* worker_ = nullptr;
  CUcontext context_ = nullptr;
};

}  // namespace shim_test
