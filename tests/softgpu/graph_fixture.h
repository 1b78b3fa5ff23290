// A graph, a stream and two kernels for the tests of graphs and of stream capture.
#pragma once

#include <vector>

#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {

class GraphTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    increment_ = Kernel(kIncrement, "increment");
    store_ = Kernel(kStore, "store");
    ASSERT_OK(cuMemAlloc(&words_, 64));
    ASSERT_OK(cuMemsetD8(words_, 0, 64));
    ASSERT_OK(cuCtxSynchronize());  // a memset is asynchronous, and stream_ waits for no other
    ASSERT_OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    ASSERT_OK(cuGraphCreate(&graph_, 0));
  }

  unsigned Word(int index) {
    unsigned value = 0;
    EXPECT_OK(cuMemcpyDtoH(&value, words_ + 4 * index, 4));
    return value;
  }

  CUDA_KERNEL_NODE_PARAMS KernelParams(CUfunction function, void** params) {
    CUDA_KERNEL_NODE_PARAMS node = {};
    node.func = function;
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = params;
    return node;
  }

  CUgraphNode AddStore(unsigned value, std::vector<CUgraphNode> after) {
    void* params[] = {&words_, &value};
    const CUDA_KERNEL_NODE_PARAMS node_params = KernelParams(store_, params);
    CUgraphNode node = nullptr;
    EXPECT_OK(cuGraphAddKernelNode(&node, graph_, after.data(), after.size(), &node_params));
    return node;
  }

  CUgraphExec Instantiate() {
    CUgraphExec exec = nullptr;
    EXPECT_OK(cuGraphInstantiate(&exec, graph_, 0));
    return exec;
  }

  CUfunction increment_ = nullptr, store_ = nullptr;
  CUdeviceptr words_ = 0;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
};

}  // namespace softgpu::testing
