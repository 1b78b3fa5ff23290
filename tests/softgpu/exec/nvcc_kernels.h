// Kernels that nvcc built from kernels.cu, for two architectures and without optimisation: the
// fixture of the tests that run them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {

class NvccKernels : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::ifstream file(std::string(KERNELS_DIR) + "/kernels_" + GetParam() + ".ptx");
    std::stringstream text;
    text << file.rdbuf();
    ASSERT_FALSE(text.str().empty());
    machine.Load(text.str());
  }

  template <class... Args>
  void MustRun(const std::string& kernel, Dim3 grid, Dim3 block, const Args&... args) {
    const std::optional<Fault> fault = machine.Run(kernel, grid, block, args...);
    ASSERT_FALSE(fault.has_value()) << fault->ToString();
  }

  std::vector<float> RandomFloats(size_t n, float low, float high) {
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> values(n);
    for (float& value : values) value = uniform(random);
    return values;
  }

  Machine machine;
  std::mt19937_64 random{42};
};

}  // namespace softgpu::testing
