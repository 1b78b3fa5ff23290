// CUDA's math library as nvcc compiles it, over the range of each function's arguments, against the
// errors that the CUDA C++ Programming Guide gives, with the long double library as the truth.
#include <gtest/gtest.h>
#include <math.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <numbers>
#include <random>
#include <sstream>

#include "tests/softgpu_exec/machine.h"

namespace softgpu::testing {
namespace {

constexpr long double kPi = std::numbers::pi_v<long double>;
constexpr int kCount = 10'000;

long double SinPi(long double x) {
  const long double turn = remainderl(x, 2);
  return sinl(kPi * (fabsl(turn) > 0.5L ? copysignl(1, turn) - turn : turn));
}

// Where a rising function has this value, by bisection between positive bounds, as exactly for a
// small result as for a large one.
long double Where(long double (*rising)(long double), long double value) {
  long double low = 1e-330L, high = 200;
  for (int i = 0; i < 2000 && high / low > 1 + 1e-18L; ++i) {
    const long double middle = high / low > 2 ? sqrtl(low * high) : (low + high) / 2;
    (rising(middle) < value ? low : high) = middle;
  }
  return (low + high) / 2;
}

long double ErfInverse(long double x) {
  if (x == 0) return x;
  if (fabsl(x) == 1) return x / 0.0L;
  return copysignl(Where(erfl, fabsl(x)), x);
}

// 1 - x is exact where x is near 1.
long double ErfcInverse(long double x) {
  if (x == 0 || x == 2) return x == 0 ? INFINITY : -INFINITY;
  if (x > 0.5L) return ErfInverse(1 - x);
  return Where([](long double y) { return -erfcl(y); }, -x);
}

// The place of a value among all values of its type.
template <class T>
int64_t Place(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const Bits bits = __builtin_bit_cast(Bits, value);
  return bits < 0 ? int64_t{std::numeric_limits<Bits>::min()} - bits : bits;
}

template <class T>
T AtPlace(int64_t place) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  return __builtin_bit_cast(
      T, static_cast<Bits>(place < 0 ? int64_t{std::numeric_limits<Bits>::min()} - place : place));
}

// Half of them evenly spread over the values of the type, half over the numbers.
template <class T>
std::vector<T> Arguments(T low, T high, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> place(Place(low), Place(high));
  std::uniform_real_distribution<T> share(0, 1);
  std::vector<T> values = {low, high};
  while (values.size() < kCount) {
    const T part = share(random);
    values.push_back(AtPlace<T>(place(random)));
    values.push_back(std::clamp(low * (1 - part) + high * part, low, high));
  }
  return values;
}

template <class T>
struct Function {
  const char* kernel;
  long double (*truth)(long double x, long double y);
  int64_t ulp;
  T x_low, x_high, y_low, y_high;
};

class Math : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(KERNELS_DIR "/math_kernels.ptx");
    std::stringstream text;
    text << file.rdbuf();
    machine.Load(text.str());
  }

  template <class T>
  void Check(const Function<T>& f) {
    const std::vector<T> x = Arguments(f.x_low, f.x_high, 5), y = Arguments(f.y_low, f.y_high, 6);
    const uint64_t xs = machine.Upload(x), ys = machine.Upload(y);
    const uint64_t out = machine.Allocate(x.size() * sizeof(T));
    const int n = static_cast<int>(x.size());
    const std::optional<Fault> fault =
        machine.Run(f.kernel, {(static_cast<uint32_t>(n) + 127) / 128}, {128}, xs, ys, out, n);
    ASSERT_FALSE(fault.has_value()) << fault->ToString();
    const std::vector<T> got = machine.Download<T>(out, x.size());
    int64_t worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const T want = static_cast<T>(f.truth(x[i], y[i]));
      if (std::isnan(want) && std::isnan(got[i])) continue;
      ASSERT_FALSE(std::isnan(want) || std::isnan(got[i]))
          << f.kernel << " of " << x[i] << ", " << y[i] << " is " << got[i];
      const int64_t away = std::abs(Place(got[i]) - Place(want));
      if (away <= worst) continue;
      worst = away;
      at = i;
    }
    EXPECT_LE(worst, f.ulp) << f.kernel << " of " << x[at] << ", " << y[at] << " is " << got[at];
  }

  Machine machine{256u << 20};
};

#define FULL kFull
#define ROW(type, name, truth, ulp, x_low, x_high, y_low, y_high)                      \
  {#name "_" #type,                                                                    \
   [](long double x, [[maybe_unused]] long double y) -> long double { return truth; }, \
   ulp,                                                                                \
   x_low,                                                                              \
   x_high,                                                                             \
   y_low,                                                                              \
   y_high},

TEST_F(Math, SinglePrecision) {
  constexpr float kFull = std::numeric_limits<float>::max();
  const std::vector<Function<float>> functions = {
#define SINGLE(name, call, ...) ROW(float, name, __VA_ARGS__)
#define DOUBLE(...)
#include "tests/softgpu_exec/math_functions.inc"
#undef SINGLE
#undef DOUBLE
  };
  for (const Function<float>& function : functions) Check(function);
}

TEST_F(Math, DoublePrecision) {
  constexpr double kFull = std::numeric_limits<double>::max();
  const std::vector<Function<double>> functions = {
#define SINGLE(...)
#define DOUBLE(name, call, ...) ROW(double, name, __VA_ARGS__)
#include "tests/softgpu_exec/math_functions.inc"
#undef SINGLE
#undef DOUBLE
#undef ROW
#undef FULL
  };
  for (const Function<double>& function : functions) Check(function);
}

}  // namespace
}  // namespace softgpu::testing
