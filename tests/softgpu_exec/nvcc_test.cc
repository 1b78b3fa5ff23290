// What nvcc makes of ordinary kernels (kernels.cu), for two architectures and without optimisation,
// against the same computation here.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "tests/softgpu_exec/machine.h"

namespace softgpu::testing {
namespace {

class Nvcc : public ::testing::TestWithParam<const char*> {
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

TEST_P(Nvcc, AssertNamesTheThread) {
  std::vector<int> values(64);
  values[37] = -1;
  const std::optional<Fault> fault = machine.Run("k_assert", {1}, {64}, machine.Upload(values));
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_ASSERT);
  EXPECT_EQ(fault->thread.x, 37u);
  EXPECT_NE(machine.printed.find("values[threadIdx.x] >= 0"), std::string::npos) << machine.printed;
}

TEST_P(Nvcc, TrapNamesTheThread) {
  const std::optional<Fault> fault = machine.Run("k_trap", {3}, {64}, 40);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(fault->thread.x, 40u);
  EXPECT_GT(fault->line, 0);
}

TEST_P(Nvcc, DivergentLoops) {
  const uint64_t out = machine.Allocate(400);
  MustRun("k_collatz", {1}, {100}, out);
  const std::vector<int> got = machine.Download<int>(out, 100);
  for (int i = 0; i < 100; ++i) {
    int v = i * 37, steps = 0;
    for (; v != 1 && steps < 1000 && v > 0; ++steps) v = (v & 1) != 0 ? 3 * v + 1 : v / 2;
    EXPECT_EQ(got[i], steps) << i;
  }
}

TEST_P(Nvcc, LocalArrays) {
  const uint64_t out = machine.Allocate(400);
  MustRun("k_local", {1}, {100}, out, 50);
  const std::vector<int> got = machine.Download<int>(out, 100);
  for (int t = 0; t < 100; ++t) {
    int sum = 0;
    for (int i = 0; i < 50; ++i) sum += ((i * 7 + t) & 63) * 50 + t;
    EXPECT_EQ(got[t], sum) << t;
  }
}

TEST_P(Nvcc, NamedBarriers) {
  const uint64_t out = machine.Allocate(256);
  MustRun("k_named_barriers", {1}, {128}, out);
  const std::vector<int> got = machine.Download<int>(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[i], (63 - i) * (63 - i));
}

TEST_P(Nvcc, VotingBarriers) {
  const uint64_t out = machine.Allocate(1200);
  for (const int limit : {0, 37, 100}) {
    MustRun("k_vote_barrier", {1}, {100}, out, limit);
    const std::vector<int> got = machine.Download<int>(out, 300);
    for (int t = 0; t < 100; ++t) {
      EXPECT_EQ(got[t * 3], limit);
      EXPECT_EQ(got[t * 3 + 1] != 0, limit == 100);
      EXPECT_EQ(got[t * 3 + 2] != 0, limit > 0);
    }
  }
}

TEST_P(Nvcc, WarpFunctions) {
  const uint64_t out = machine.Allocate(64 * 32);
  MustRun("k_warp", {1}, {64}, out);
  const std::vector<uint32_t> got = machine.Download<uint32_t>(out, 64 * 8);
  for (uint32_t t = 0; t < 64; ++t) {
    const uint32_t lane = t % 32;
    const uint32_t* r = &got[t * 8];
    EXPECT_EQ(r[0], 0x49249249u);
    EXPECT_EQ(r[1], 3u);
    uint32_t same = 0;
    for (uint32_t l = 0; l < 32; ++l) same |= uint32_t{l / 5 == lane / 5} << l;
    EXPECT_EQ(r[2], same);
    EXPECT_EQ(r[3], 496u);
    EXPECT_EQ(r[4], lane % 8 >= 3 ? lane - 3 : lane);
    EXPECT_EQ(r[5], (lane & 16) | ((lane + 1) & 15));
    EXPECT_EQ(r[6], lane % 2 == 1 ? 0 : (lane + 2 < 32 ? lane + 2 : lane) + 1600);
    EXPECT_EQ(static_cast<int>(r[7]), -9);
  }
}

TEST_P(Nvcc, WarpBarrierAcrossPaths) {
  const uint64_t out = machine.Allocate(128);
  MustRun("k_syncwarp", {1}, {32}, out);
  const std::vector<int> got = machine.Download<int>(out, 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(got[i], i < 16 ? (i + 16) * 2 : i - 16);
}

TEST_P(Nvcc, SpinLockInsideAWarpMakesProgress) {
  const uint64_t lock = machine.Allocate(4), counter = machine.Allocate(4);
  MustRun("k_spinlock", {2}, {64}, lock, counter);
  EXPECT_EQ(machine.Download<int>(counter, 1)[0], 128);
}

TEST_P(Nvcc, TensorCore) {
  std::vector<uint16_t> a(256), b(128);
  const uint16_t small[] = {0x0000, 0x3c00, 0x4000, 0x4200,
                            0xbc00, 0x3800, 0xc000};  // 0 1 2 3 -1 .5 -2
  const double value[] = {0, 1, 2, 3, -1, 0.5, -2};
  for (int i = 0; i < 256; ++i) a[i] = small[i * 5 % 7];
  for (int i = 0; i < 128; ++i) b[i] = small[(i * 3 + i / 8) % 7];
  const uint64_t da = machine.Upload(a), db = machine.Upload(b), dc = machine.Allocate(512);
  MustRun("k_mma", {1}, {32}, da, db, dc);
  const std::vector<float> c = machine.Download<float>(dc, 128);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      double sum = 0;
      for (int k = 0; k < 16; ++k) {
        const int i = row * 16 + k, j = k * 8 + column;
        sum += value[i * 5 % 7] * value[(j * 3 + j / 8) % 7];
      }
      EXPECT_EQ(c[row * 8 + column], sum) << row << " " << column;
    }
  }
}

TEST_P(Nvcc, GridBarrier) {
  const int n = 20 * 64;
  const uint64_t data = machine.Upload(std::vector<int>(n));
  machine.cooperative = true;
  MustRun("k_grid_sync", {20}, {64}, data, n);
  EXPECT_EQ(machine.Download<int>(data, n), std::vector<int>(n, 4));
}

TEST_P(Nvcc, Integers64) {
  const int n = 512;
  std::vector<int64_t> a(n), b(n);
  for (int i = 0; i < n; ++i) {
    a[i] = static_cast<int64_t>(random());
    b[i] = static_cast<int64_t>(random()) >> (i % 60);
  }
  b[3] = 0;
  const uint64_t da = machine.Upload(a), db = machine.Upload(b), out = machine.Allocate(n * 64);
  MustRun("k_int64", {4}, {128}, da, db, out, n);
  const std::vector<int64_t> got = machine.Download<int64_t>(out, n * 8);
  for (int i = 0; i < n; ++i) {
    const int64_t* r = &got[i * 8];
    EXPECT_EQ(r[0],
              static_cast<int64_t>(static_cast<uint64_t>(a[i]) * static_cast<uint64_t>(b[i])));
    EXPECT_EQ(r[1], b[i] == 0 ? 0 : a[i] / b[i]);
    EXPECT_EQ(r[2], b[i] == 0 ? 0 : a[i] % b[i]);
    EXPECT_EQ(r[3], static_cast<int64_t>((static_cast<__int128>(a[i]) * b[i]) >> 64));
    EXPECT_EQ(r[4], a[i] >> (b[i] & 63));
    EXPECT_EQ(r[5], static_cast<int64_t>(static_cast<uint64_t>(a[i]) >> (b[i] & 63)));
    EXPECT_EQ(r[6], __builtin_popcountll(a[i]) + 100 * (b[i] == 0 ? 64 : __builtin_clzll(b[i])));
    EXPECT_EQ(r[7], std::min(a[i], b[i]));
  }
}

TEST_P(Nvcc, EndlessLoopHonoursCancel) {
  const uint64_t flag = machine.Allocate(4);
  std::thread canceller([&] { machine.cancel = true; });
  const std::optional<Fault> fault = machine.Run("k_endless", {4}, {64}, flag);
  canceller.join();
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_LAUNCH_FAILED);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Nvcc, ::testing::Values("80", "90", "80_debug"));

}  // namespace
}  // namespace softgpu::testing
