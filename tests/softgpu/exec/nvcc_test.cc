// What nvcc makes of ordinary kernels (kernels.cu), against the same computation here.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>

#include "tests/softgpu/exec/nvcc_kernels.h"

namespace softgpu::testing {
namespace {

class Nvcc : public NvccKernels {};

TEST_P(Nvcc, Recursion) {
  const uint64_t out = machine.Allocate(256);
  MustRun("k_recursion", {1}, {64}, out);
  const int fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  const std::vector<int> got = machine.Download<int>(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[i], fibonacci[i % 12]) << i;
}

TEST_P(Nvcc, StackOverflowIsAFault) {
  const uint64_t out = machine.Allocate(256);
  const std::optional<Fault> fault = machine.Run("k_overflow", {1}, {32}, out);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_NE(fault->what.find("stack overflow"), std::string::npos) << fault->what;
}

TEST_P(Nvcc, IndirectCallsDiverge) {
  std::vector<int> values(70);
  std::iota(values.begin(), values.end(), 5);
  const uint64_t io = machine.Upload(values);
  MustRun("k_indirect", {1}, {70}, io);
  const std::vector<int> got = machine.Download<int>(io, 70);
  for (int i = 0; i < 70; ++i) EXPECT_EQ(got[i], i % 2 == 0 ? values[i] * 3 : values[i] + 7);
}

TEST_P(Nvcc, SwitchTable) {
  std::vector<int> values(64);
  for (int i = 0; i < 64; ++i) values[i] = i % 9;
  const uint64_t io = machine.Upload(values);
  MustRun("k_switch", {1}, {64}, io, 0x1234);
  const int x = 0x1234;
  const int want[] = {x + 3, x * 7, x ^ 5, x / 3, x % 9, 5, 19, 0x2c480000, x};
  const std::vector<int> got = machine.Download<int>(io, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[i], want[i % 9]) << i;
}

TEST_P(Nvcc, ReductionIsExactOnIntegers) {
  const int n = 100'000;
  std::vector<float> values(n);
  for (int i = 0; i < n; ++i) values[i] = static_cast<float>(i % 64);
  const uint64_t in = machine.Upload(values), out = machine.Allocate(4);
  MustRun("k_reduce", {7}, {256}, in, out, n);
  EXPECT_EQ(machine.Download<float>(out, 1)[0],
            std::accumulate(values.begin(), values.end(), 0.0f));
}

TEST_P(Nvcc, DynamicSharedMemory) {
  std::vector<float> values(256);
  std::iota(values.begin(), values.end(), 0.0f);
  const uint64_t io = machine.Upload(values);
  machine.dynamic_shared = 1024;
  MustRun("k_reverse", {1}, {256}, io);
  const std::vector<float> got = machine.Download<float>(io, 256);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(got[i], 255 - i);
}

TEST_P(Nvcc, SharedMemoryIsBounded) {
  const uint64_t io = machine.Upload(std::vector<float>(256));
  machine.dynamic_shared = 512;
  const std::optional<Fault> fault = machine.Run("k_reverse", {1}, {256}, io);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(fault->thread.x, 128u) << fault->ToString();
}

TEST_P(Nvcc, TiledGemm) {
  const int n = 64;
  const std::vector<float> a = RandomFloats(n * n, -1, 1), b = RandomFloats(n * n, -1, 1);
  const uint64_t da = machine.Upload(a), db = machine.Upload(b), dc = machine.Allocate(n * n * 4);
  MustRun("k_gemm", {n / 16, n / 16}, {16, 16}, da, db, dc, n);
  const std::vector<float> c = machine.Download<float>(dc, n * n);
  for (int row = 0; row < n; ++row) {
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      const bool fuses = std::string(GetParam()) != "80_debug";
      for (int k = 0; k < n; ++k) {
        const float x = a[row * n + k], y = b[k * n + column];
        sum = fuses ? std::fma(x, y, sum) : x * y + sum;
      }
      ASSERT_EQ(c[row * n + column], sum) << row << " " << column;
    }
  }
}

TEST_P(Nvcc, Nbody) {
  const int n = 256;
  const std::vector<float> bodies = RandomFloats(n * 4, -1, 1);
  const uint64_t in = machine.Upload(bodies), out = machine.Allocate(n * 12);
  MustRun("k_nbody", {2}, {128}, in, out, n);
  const std::vector<float> got = machine.Download<float>(out, n * 3);
  for (int i = 0; i < n; ++i) {
    double sum[3] = {};
    for (int j = 0; j < n; ++j) {
      double d[3], r2 = 1e-3;
      for (int k = 0; k < 3; ++k) d[k] = double(bodies[j * 4 + k]) - bodies[i * 4 + k];
      for (int k = 0; k < 3; ++k) r2 += d[k] * d[k];
      for (int k = 0; k < 3; ++k) sum[k] += d[k] * bodies[j * 4 + 3] / (r2 * std::sqrt(r2));
    }
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(got[i * 3 + k], sum[k], 2e-3 * std::max(1.0, std::abs(sum[k]))) << i;
    }
  }
}

TEST_P(Nvcc, MathFunctions) {
  const int n = 3000;
  std::vector<float> in = RandomFloats(n, -12, 12);
  in[0] = 1e30f;  // the slow path of the trigonometric reduction
  const uint64_t din = machine.Upload(in), dout = machine.Allocate(n * 64);
  MustRun("k_math", {(n + 127) / 128}, {128}, din, dout, n);
  const std::vector<float> out = machine.Download<float>(dout, n * 16);
  for (int i = 0; i < n; ++i) {
    const double v = in[i];
    const double want[16] = {std::sin(v),
                             std::cos(v),
                             std::exp(v),
                             std::log(std::fabs(v)),
                             std::pow(std::fabs(v), 2.5),
                             std::tanh(v),
                             std::erf(v),
                             1 / v,
                             std::sqrt(std::fabs(v)),
                             1 / std::sqrt(std::fabs(v)),
                             std::exp(v),
                             std::sin(v),
                             std::atan2(v, 2.0),
                             std::fmod(v, double(0.7f)),
                             v / 3,
                             std::cbrt(v)};
    for (int k = 0; k < 16; ++k) {
      if (i == 0 && (k == 11 || k == 13)) continue;  // no accuracy is promised there
      const double got = out[i * 16 + k];
      if (std::fabs(want[k]) > 3.4e38) {
        EXPECT_TRUE(std::isinf(got)) << "function " << k << " of " << v;
        continue;
      }
      const double bound = 2e-6 * std::fabs(want[k]) + (k == 11 ? 1e-6 : 1e-9);
      EXPECT_NEAR(got, want[k], bound) << "function " << k << " of " << v;
    }
  }
}

TEST_P(Nvcc, MathFunctions64) {
  const int n = 1000;
  const std::vector<float> narrow = RandomFloats(n, -20, 20);
  std::vector<double> in(narrow.begin(), narrow.end());
  in[0] = 1e22;
  const uint64_t din = machine.Upload(in), dout = machine.Allocate(n * 64);
  MustRun("k_math64", {8}, {128}, din, dout, n);
  const std::vector<double> out = machine.Download<double>(dout, n * 8);
  for (int i = 0; i < n; ++i) {
    const double v = in[i];
    const double want[8] = {std::sin(v),
                            std::cos(v),
                            std::exp(v),
                            std::log(std::fabs(v)),
                            std::pow(std::fabs(v), 2.5),
                            std::tanh(v),
                            1 / v,
                            std::sqrt(std::fabs(v))};
    for (int k = 0; k < 8; ++k) {
      if (std::isinf(want[k])) {
        EXPECT_EQ(out[i * 8 + k], want[k]);
        continue;
      }
      EXPECT_NEAR(out[i * 8 + k], want[k], 1e-14 * std::fabs(want[k]))
          << "function " << k << " of " << v;
    }
    EXPECT_EQ(out[i * 8 + 6], want[6]);
    EXPECT_EQ(out[i * 8 + 7], want[7]);
  }
}

TEST_P(Nvcc, HalfPrecision) {
  const uint64_t a = machine.Upload(std::vector<uint16_t>(32, 0x3e00));      // 1.5
  const uint64_t b = machine.Upload(std::vector<uint32_t>(32, 0xc0003800));  // -2, 0.5
  const uint64_t fused = machine.Allocate(64), packed = machine.Allocate(128);
  const uint64_t sum = machine.Allocate(128), brain = machine.Allocate(64);
  MustRun("k_half", {1}, {32}, a, b, fused, packed, sum, brain);
  EXPECT_EQ(machine.Download<uint16_t>(fused, 32)[7], 0x4180);        // 2.75
  EXPECT_EQ(machine.Download<uint32_t>(packed, 32)[7], 0x40003a00u);  // 2, 0.75
  EXPECT_EQ(machine.Download<float>(sum, 32)[7], 2.0f);
  EXPECT_EQ(machine.Download<uint16_t>(brain, 32)[7], 0x4020);  // 2.5
}

TEST_P(Nvcc, Atomics) {
  const uint64_t s = machine.Upload(std::vector<int>(3));
  const uint64_t u = machine.Upload(std::vector<uint32_t>{~0u, 0, 0, 0, 0, 0, 0});
  const uint64_t wide = machine.Allocate(8), d = machine.Allocate(8);
  MustRun("k_atomics", {1}, {100}, s, u, wide, d);
  EXPECT_EQ(machine.Download<int>(s, 3), (std::vector<int>{99, -99, 100}));
  uint32_t parity = 0;
  for (uint32_t i = 0; i < 100; ++i) parity ^= i;
  const std::vector<uint32_t> got = machine.Download<uint32_t>(u, 7);
  EXPECT_EQ(std::vector<uint32_t>(got.begin(), got.begin() + 6),
            (std::vector<uint32_t>{0, 0xffff, parity, 100 % 11, 10, 7}));
  EXPECT_TRUE(got[6] >= 1 && got[6] <= 100) << got[6];  // whoever came first
  EXPECT_EQ(machine.Download<uint64_t>(wide, 1)[0], 4950u);
  EXPECT_EQ(machine.Download<double>(d, 1)[0], 50.0);
}

TEST_P(Nvcc, StructParameter) {
  struct Mixed {
    int a;
    float b[5];
    double d;
  } value = {10, {1, 2, 3, 4, 5}, 0.25};
  const uint64_t out = machine.Allocate(40);
  MustRun("k_struct", {1}, {10}, value, out);
  const std::vector<float> got = machine.Download<float>(out, 10);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(got[i], value.b[i % 5] + 10.25f);
  MustRun("k_printf", {1}, {2}, value);
  EXPECT_EQ(machine.printed, "t 0  0.25 str 123456789ab z%\nt 1  0.25 str 123456789ab z%\n");
}

INSTANTIATE_TEST_SUITE_P(Architectures, Nvcc, ::testing::Values("80", "90", "80_debug"));

}  // namespace
}  // namespace softgpu::testing
