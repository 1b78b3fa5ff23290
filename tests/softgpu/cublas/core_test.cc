// The arithmetic below cuBLAS, without a device: conversions, and that results don't depend on how
// many threads there are or how busy they are.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "softgpu/cublas/core/dense.h"
#include "softgpu/cublas/core/mixed.h"
#include "softgpu/cublas/core/pool.h"
#include "tests/softgpu/cublas/random_cases.h"

namespace softgpu::cublas {
namespace {

TEST(Types, HalfRoundTripsEveryFiniteValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<uint16_t>(bits)};
    const float value = ToFloat(half);
    if (std::isnan(value)) {
      EXPECT_EQ(bits & 0x7c00u, 0x7c00u);
      EXPECT_TRUE(std::isnan(ToFloat(ToHalf(value))));
    } else {
      ASSERT_EQ(ToHalf(value).bits, bits) << value;
    }
  }
}

TEST(Types, HalfKnownValues) {
  EXPECT_EQ(ToFloat(Half{0x3c00}), 1.0f);
  EXPECT_EQ(ToFloat(Half{0xc000}), -2.0f);
  EXPECT_EQ(ToFloat(Half{0x0001}), 0x1p-24f);
  EXPECT_EQ(ToFloat(Half{0x7bff}), 65504.0f);
  EXPECT_TRUE(std::isinf(ToFloat(Half{0x7c00})));
  EXPECT_EQ(ToHalf(65519.0f).bits, 0x7bff);  // below the midpoint to infinity
  EXPECT_EQ(ToHalf(65520.0f).bits, 0x7c00);
  EXPECT_EQ(ToHalf(1.0f + 0x1p-11f).bits, 0x3c00);  // a tie goes to even
  EXPECT_EQ(ToHalf(1.0f + 3 * 0x1p-11f).bits, 0x3c02);
  EXPECT_EQ(ToHalf(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(ToHalf(std::nextafter(0x1p-25f, 1.0f)).bits, 0x0001);
  EXPECT_EQ(ToHalf(-0.0f).bits, 0x8000);
}

// Between neighbouring halves, rounding is to nearest, ties to even.
TEST(Types, HalfRoundsToNearestEven) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = ToFloat(Half{bits}), high = ToFloat(Half{static_cast<uint16_t>(bits + 1)});
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(ToHalf(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(ToHalf(std::nextafter(middle, low)).bits, bits);
    ASSERT_EQ(ToHalf(std::nextafter(middle, high)).bits, bits + 1);
  }
}

TEST(Types, Bfloat16RoundsToNearestEven) {
  EXPECT_EQ(ToBfloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(ToBfloat16(1.0f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(ToBfloat16(1.0f + 3 * 0x1p-8f).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(ToFloat(ToBfloat16(NAN))));
  EXPECT_EQ(ToFloat(Bfloat16{0xc040}), -3.0f);
}

TEST(Convert, IntegersSaturate) {
  const float values[] = {-1000.0f, -128.4f, 2.5f, 3.5f, 127.6f, 1e9f};
  int8_t stored[6];
  Store(stored, CUDA_R_8I, values, 6);
  const int8_t expected[] = {-128, -128, 2, 4, 127, 127};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(stored[i], expected[i]);
}

TEST(Pool, RunsEveryPartOnceAlsoNestedAndConcurrent) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> runs{0};
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&] {
      std::vector<std::atomic<int>> seen(100);
      ParallelFor(10, [&](int64_t outer) {
        ParallelFor(10, [&](int64_t inner) {
          seen[outer * 10 + inner].fetch_add(1);
          runs.fetch_add(1);
        });
      });
      for (const std::atomic<int>& count : seen) EXPECT_EQ(count.load(), 1);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(runs.load(), 800);
}

template <class T>
std::vector<T> Fractions(Random& random, int64_t count) {
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random.Between(-1000000, 1000000)) / T(1234567);
  return values;
}

// The same product alone, and by several threads at once while others keep the cores busy.
TEST(Determinism, GemmHasTheSameBitsUnderLoad) {
  Random random;
  SCOPED_TRACE(random.Describe());
  const int64_t m = 700, n = 600, k = 330;  // several tiles, with edges
  const std::vector<float> a = Fractions<float>(random, m * k), b = Fractions<float>(random, k * n);
  const GemmShape shape{CUBLAS_OP_N, CUBLAS_OP_N, m, n, k};
  const auto product = [&] {
    std::vector<float> c(m * n);
    dense::Gemm<float>(shape, 1.0f, {a.data(), m}, {b.data(), k}, 0.0f, {c.data(), m});
    return c;
  };
  const std::vector<float> alone = product();
  std::vector<std::thread> threads;
  std::atomic<int> equal{0};
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) equal += product() == alone ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal.load(), 18);
}

TEST(Determinism, TriangularSolveHasTheSameBitsUnderLoad) {
  Random random;
  SCOPED_TRACE(random.Describe());
  const int64_t m = 200, n = 500;
  std::vector<double> a = Fractions<double>(random, m * m);
  for (int64_t i = 0; i < m; ++i) a[i + i * m] = 40;
  const std::vector<double> b = Fractions<double>(random, m * n);
  const TriangularShape shape{
      CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, m, n};
  const auto solve = [&] {
    std::vector<double> x = b;
    dense::Trsm<double>(shape, 1.0, {a.data(), m}, {x.data(), m});
    return x;
  };
  const std::vector<double> alone = solve();
  std::vector<std::thread> threads;
  std::atomic<int> equal{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { equal += solve() == alone ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal.load(), 4);
}

// More threads than OpenBLAS has buffers for would abort the process, were they let in.
TEST(OpenBlas, ManyConcurrentCallers) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 200; ++i) {
    threads.emplace_back([&] {
      const std::vector<float> a(64 * 64, 1.0f);
      std::vector<float> c(64 * 64);
      dense::Gemm<float>({CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 64}, 1.0f, {a.data(), 64},
                         {a.data(), 64}, 0.0f, {c.data(), 64});
      right += c == std::vector<float>(64 * 64, 64.0f) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 200);
}

}  // namespace
}  // namespace softgpu::cublas
