// CUDA's math library as nvcc compiles it, over the range of each function's arguments, against the
// errors that the CUDA Programming Guide gives, with the long double library as the truth.
#include <gtest/gtest.h>
#include <math.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numbers>
#include <random>
#include <sstream>

#include "softgpu/exec/half_scalar.h"
#include "tests/softgpu/exec/machine.h"

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

// The nearest half: the float on the way keeps a bit that says on which side of it the value is.
uint16_t NearestHalf(long double value) {
  float f = static_cast<float>(value);
  if (f != value && (__builtin_bit_cast(uint32_t, f) & 1) == 0) {
    f = std::nextafter(f, value > f ? INFINITY : -INFINITY);
  }
  return exec::scalar::FloatToHalf(f);
}

int64_t HalfPlace(uint16_t code) { return code < 0x8000 ? code : 0x8000 - int64_t{code}; }

template <class T>
struct Function {
  const char* kernel;
  long double (*truth)(long double x, long double y);
  bool near;  // `error` is of the value, else in units of the last place
  long double (*error)(long double x);
  T x_low, x_high, y_low, y_high;
};

struct HalfFunction {
  const char* kernel;
  long double (*truth)(long double x, long double y);
  int64_t ulp;
  int corrected;
};

template <class T>
long double Distance(const Function<T>& f, T got, long double want) {
  const T nearest = static_cast<T>(want);
  if (got == nearest) return 0;  // and both infinite
  if (f.near) return fabsl(got - want);
  return static_cast<long double>(std::abs(Place(got) - Place(nearest)));
}

class Math : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(KERNELS_DIR "/math_kernels.ptx");
    std::stringstream text;
    text << file.rdbuf();
    machine.Load(text.str());
  }

  template <class T>
  std::vector<T> Run(const char* kernel, const std::vector<T>& x, const std::vector<T>& y) {
    const uint64_t xs = machine.Upload(x), ys = machine.Upload(y);
    const uint64_t out = machine.Allocate(x.size() * sizeof(T));
    const int n = static_cast<int>(x.size());
    const std::optional<Fault> fault =
        machine.Run(kernel, {(static_cast<uint32_t>(n) + 127) / 128}, {128}, xs, ys, out, n);
    EXPECT_FALSE(fault.has_value()) << fault->ToString();
    return machine.Download<T>(out, x.size());
  }

  template <class T>
  void Check(const Function<T>& f) {
    const std::vector<T> x = Arguments(f.x_low, f.x_high, 5), y = Arguments(f.y_low, f.y_high, 6);
    const std::vector<T> got = Run(f.kernel, x, y);
    long double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const long double want = f.truth(x[i], y[i]);
      if (std::isnan(want) && std::isnan(got[i])) continue;
      ASSERT_FALSE(std::isnan(want) || std::isnan(got[i]))
          << f.kernel << " of " << x[i] << ", " << y[i] << " is " << got[i];
      const long double away = Distance(f, got[i], want) - f.error(x[i]);
      if (away <= worst) continue;
      worst = away;
      at = i;
    }
    EXPECT_LE(worst, 0) << f.kernel << " of " << x[at] << ", " << y[at] << " is " << got[at];
  }

  // Of all halves.
  void Check(const HalfFunction& f) {
    std::vector<uint16_t> x(65536);
    for (uint32_t code = 0; code < 65536; ++code) x[code] = static_cast<uint16_t>(code);
    const std::vector<uint16_t> got = Run(f.kernel, x, x);
    int corrected = 0;
    for (uint32_t code = 0; code < 65536; ++code) {
      const long double a = exec::scalar::HalfToFloat(x[code]), want = f.truth(a, 0);
      const float found = exec::scalar::HalfToFloat(got[code]);
      if (std::isnan(want) && std::isnan(found)) continue;
      const int64_t away = std::abs(HalfPlace(got[code]) - HalfPlace(NearestHalf(want)));
      EXPECT_TRUE(away <= f.ulp + 1 && !std::isnan(found))
          << f.kernel << " of " << a << " is " << found;
      corrected += away > f.ulp;
    }
    EXPECT_LE(corrected, f.corrected) << f.kernel;
  }

  Machine machine{256u << 20};
};

#define FULL kFull
#define ROW(type, name, truth, near, error, x_low, x_high, y_low, y_high)              \
  {#name "_" #type,                                                                    \
   [](long double x, [[maybe_unused]] long double y) -> long double { return truth; }, \
   near,                                                                               \
   []([[maybe_unused]] long double x) -> long double { return error; },                \
   x_low,                                                                              \
   x_high,                                                                             \
   y_low,                                                                              \
   y_high},
#define SINGLE(...)
#define DOUBLE(...)
#define SINGLE_NEAR(...)
#define DOUBLE_NEAR(...)
#define HALF(...)

TEST_F(Math, SinglePrecision) {
  constexpr float kFull = std::numeric_limits<float>::max();
  const std::vector<Function<float>> functions = {
#undef SINGLE
#undef SINGLE_NEAR
#define SINGLE(name, call, truth, ...) ROW(float, name, truth, false, __VA_ARGS__)
#define SINGLE_NEAR(name, call, truth, ...) ROW(float, name, truth, true, __VA_ARGS__)
#include "tests/softgpu/exec/math_functions.inc"
#undef SINGLE
#undef SINGLE_NEAR
#define SINGLE(...)
#define SINGLE_NEAR(...)
  };
  for (const Function<float>& function : functions) Check(function);
}

TEST_F(Math, DoublePrecision) {
  constexpr double kFull = std::numeric_limits<double>::max();
  const std::vector<Function<double>> functions = {
#undef DOUBLE
#undef DOUBLE_NEAR
#define DOUBLE(name, call, truth, ...) ROW(double, name, truth, false, __VA_ARGS__)
#define DOUBLE_NEAR(name, call, truth, ...) ROW(double, name, truth, true, __VA_ARGS__)
#include "tests/softgpu/exec/math_functions.inc"
#undef DOUBLE
#undef DOUBLE_NEAR
#define DOUBLE(...)
#define DOUBLE_NEAR(...)
  };
  for (const Function<double>& function : functions) Check(function);
}

TEST_F(Math, HalfPrecision) {
  const std::vector<HalfFunction> functions = {
#undef HALF
#define HALF(name, call, truth, ulp, corrected)                                           \
  {#name "___half", [](long double x, long double) -> long double { return truth; }, ulp, \
   corrected},
#include "tests/softgpu/exec/math_functions.inc"
  };
  for (const HalfFunction& function : functions) Check(function);
}

}  // namespace
}  // namespace softgpu::testing
