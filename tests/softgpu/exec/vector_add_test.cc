// The first kernel: parses, runs, counts right at the ragged end.
#include <gtest/gtest.h>

#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

TEST(VectorAdd, RunsOverARaggedGrid) {
  const size_t n = 100'003;
  std::vector<float> a(n), b(n);
  for (size_t i = 0; i < n; ++i) {
    a[i] = static_cast<float>(i) * 0.5f;
    b[i] = 1.0f / static_cast<float>(i + 1);
  }
  const std::vector<float> d = RunElements<float, float>("f32", "f32", "add.f32 %d, %a, %b;", a, b);
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(d[i], a[i] + b[i]) << i;
}

}  // namespace
}  // namespace softgpu::testing
