// Errors of the approximate functions over the whole range of their arguments, against the bounds
// that the PTX ISA gives, with the double-precision library as the truth.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "softgpu/exec/half_scalar.h"
#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

// Floats of all signs, exponents and kinds, evenly spread over the codes.
const std::vector<float>& AllFloats() {
  static const std::vector<float> floats = [] {
    std::vector<float> values;
    for (uint64_t code = 0; code < 1ull << 32; code += 7919) {
      values.push_back(__builtin_bit_cast(float, static_cast<uint32_t>(code)));
    }
    return values;
  }();
  return floats;
}

struct Bound {
  double relative, absolute;  // 2 to the power of these; whichever is larger counts
};

constexpr double kNone = -2000;

void Check(const std::string& body, const std::vector<float>& a, const std::vector<float>& b,
           const std::function<double(double, double)>& truth, Bound bound) {
  const std::vector<float> got = RunElements<float, float>("f32", "f32", body, a, b);
  double worst = 0;
  float at = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double want = truth(a[i], b.empty() ? a[i] : b[i]);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got[i])) << body << " of " << a[i];
    } else if (std::isinf(static_cast<float>(want)) || std::isinf(got[i])) {
      // At the end of the range the nearest float may be infinity.
      ASSERT_TRUE(std::fabs(want) > 3.4e38 && std::signbit(want) == std::signbit(got[i]))
          << body << " of " << a[i] << " is " << got[i];
    } else {
      // Subnormal results are as exact as their format allows.
      const double allowed = std::max(
          {std::fabs(want) * std::exp2(bound.relative), std::exp2(bound.absolute), 0x1p-149});
      const double error = std::fabs(got[i] - want) / allowed;
      if (error > worst) {
        worst = error;
        at = a[i];
      }
    }
  }
  EXPECT_LE(worst, 1) << body << ": the error at " << at << " in units of the bound";
}

std::vector<float> Uniform(float low, float high) {
  std::vector<float> values;
  std::mt19937 random(31);
  std::uniform_real_distribution<float> uniform(low, high);
  for (int i = 0; i < 200'000; ++i) values.push_back(uniform(random));
  return values;
}

// An instruction, what it computes, and what its section of the PTX ISA, Floating-Point
// Instructions, bounds its error by. A bound in units in the last place is checked as the relative
// error that such a unit is at the least.
struct Approximation {
  const char* body;
  double (*truth)(double a, double b);
  Bound bound;
};

double Reciprocal(double a, double) { return 1 / a; }
double Quotient(double a, double b) { return a / b; }
double Root(double a, double) { return std::sqrt(a); }
double InverseRoot(double a, double) {
  return a == 0 ? std::copysign(INFINITY, a) : 1 / std::sqrt(a);
}

constexpr Approximation kApproximations[] = {
    // ex2: 2 units in the last place (until version 7: 2^-22.5, relative)
    {"ex2.approx.f32 %d, %a;", [](double a, double) { return std::exp2(a); }, {-23, kNone}},
    // lg2: 2^-22, absolute within (0.5, 2), relative elsewhere (until version 7: 2^-22.6)
    {"lg2.approx.f32 %d, %a;", [](double a, double) { return std::log2(a); }, {-22.6, -22.6}},
    // sqrt: 2^-23, relative; .rn: correctly rounded
    {"sqrt.approx.f32 %d, %a;", Root, {-23, kNone}},
    {"sqrt.rn.f32 %d, %a;", Root, {-24, kNone}},
    // rsqrt: 2^-22.9, relative
    {"rsqrt.approx.f32 %d, %a;", InverseRoot, {-22.9, kNone}},
    // rcp: 1 unit in the last place; .rn: correctly rounded
    {"rcp.approx.f32 %d, %a;", Reciprocal, {-24, kNone}},
    {"rcp.rn.f32 %d, %a;", Reciprocal, {-24, kNone}},
    // tanh: 2^-11, relative
    {"tanh.approx.f32 %d, %a;", [](double a, double) { return std::tanh(a); }, {-11, kNone}},
    // div.full: 2 units in the last place
    {"div.full.f32 %d, %a, %b;", Quotient, {-23, kNone}},
};

TEST(Accuracy, SinglePrecisionOverAllArguments) {
  const std::vector<float>& x = AllFloats();
  const std::vector<float> backwards(x.rbegin(), x.rend());
  for (const Approximation& row : kApproximations) {
    const bool two = row.truth == Quotient;
    Check(row.body, x, two ? backwards : std::vector<float>(), row.truth, row.bound);
  }
}

// div.approx: 2 units in the last place while 2^-126 <= |b| <= 2^126; beyond, 0 or, of infinity,
// NaN.
TEST(Accuracy, ApproximateQuotient) {
  std::vector<float> a, b, large;
  for (const float value : AllFloats()) {
    const float size = std::fabs(value);
    if (!std::isfinite(value) || size < 0x1p-126f) continue;
    (size > 0x1p126f ? large : b).push_back(value);
  }
  a.assign(b.rbegin(), b.rend());
  Check("div.approx.f32 %d, %a, %b;", a, b, Quotient, {-23, kNone});
  a.resize(large.size());
  for (const float got :
       RunElements<float, float>("f32", "f32", "div.approx.f32 %d, %a, %b;", a, large))
    ASSERT_EQ(got, 0);
  a.assign(large.size(), INFINITY);
  for (const float got :
       RunElements<float, float>("f32", "f32", "div.approx.f32 %d, %a, %b;", a, large))
    ASSERT_TRUE(std::isnan(got));
}

// sin, cos: absolute; 2^-20.5 within two turns around 0, 2^-14.7 within a hundred half turns.
TEST(Accuracy, SineAndCosine) {
  constexpr float kPi = std::numbers::pi_v<float>;
  const std::vector<float> turn = Uniform(-2 * kPi, 2 * kPi),
                           turns = Uniform(-100 * kPi, 100 * kPi);
  const auto sine = [](double a, double) { return std::sin(a); };
  const auto cosine = [](double a, double) { return std::cos(a); };
  Check("sin.approx.f32 %d, %a;", turn, {}, sine, {kNone, -20.5});
  Check("cos.approx.f32 %d, %a;", turn, {}, cosine, {kNone, -20.5});
  Check("sin.approx.f32 %d, %a;", turns, {}, sine, {kNone, -14.7});
  Check("cos.approx.f32 %d, %a;", turns, {}, cosine, {kNone, -14.7});
}

// ex2: relative, 2^-9.9 of f16 and 2^-7 of bf16; tanh: absolute, 2^-10.987 of f16 and 2^-8 of bf16.
TEST(Accuracy, AllHalves) {
  std::vector<uint16_t> x(65536);
  for (uint32_t v = 0; v < 65536; ++v) x[v] = static_cast<uint16_t>(v);
  struct Format {
    const char* name;
    float (*decode)(uint16_t);
    double ex2, tanh;
  };
  for (const Format& f : {Format{"f16", exec::scalar::HalfToFloat, -9.9, -10.987},
                          Format{"bf16", exec::scalar::Bf16ToFloat, -7, -8}}) {
    const std::string ftz = f.name[0] == 'b' ? ".ftz." : ".";
    const std::vector<uint16_t> e =
        RunElements<uint16_t, uint16_t>("b16", "b16", "ex2.approx" + ftz + f.name + " %d, %a;", x);
    const std::vector<uint16_t> t = RunElements<uint16_t, uint16_t>(
        "b16", "b16", std::string("tanh.approx.") + f.name + " %d, %a;", x);
    for (uint32_t v = 0; v < 65536; ++v) {
      const double a = f.decode(x[v]), power = std::exp2(a), tangent = std::tanh(a);
      if (std::isnan(a)) {
        ASSERT_TRUE(std::isnan(f.decode(e[v])) && std::isnan(f.decode(t[v]))) << f.name << v;
        continue;
      }
      const double largest = f.name[0] == 'b' ? 3.38e38 : 65504;
      if (power < largest) {
        ASSERT_NEAR(f.decode(e[v]), power, power * std::exp2(f.ex2) + 0x1p-24) << f.name << a;
      }
      ASSERT_NEAR(f.decode(t[v]), tangent, std::exp2(f.tanh)) << f.name << a;
    }
  }
}

// rcp, sqrt: correctly rounded. rcp.approx.ftz.f64 takes and gives the upper word, 20 bits of the
// fraction; of rsqrt.approx.f64 the PTX ISA gives no bound: CUDA's rsqrt() has 1 unit in the last
// place.
TEST(Accuracy, DoublePrecision) {
  std::vector<double> x;
  std::mt19937_64 random(17);
  for (int i = 0; i < 200'000; ++i) x.push_back(__builtin_bit_cast(double, uint64_t{random()}));
  const auto run = [&](const char* body) {
    return RunElements<double, double>("f64", "f64", body, x);
  };
  const std::vector<double> exact = run("rcp.rn.f64 %d, %a;"), root = run("sqrt.rn.f64 %d, %a;");
  const std::vector<double> rough = run("rcp.approx.ftz.f64 %d, %a;");
  const std::vector<double> inverse = run("rsqrt.approx.f64 %d, %a;");
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isnormal(x[i])) continue;
    ASSERT_EQ(exact[i], 1 / x[i]) << x[i];
    if (std::isnormal(1 / x[i])) {
      ASSERT_NEAR(rough[i] * x[i], 1, 0x1p-19) << x[i];
    }
    if (x[i] < 0) continue;
    ASSERT_EQ(root[i], std::sqrt(x[i])) << x[i];
    ASSERT_NEAR(inverse[i] * std::sqrt(x[i]), 1, 0x1p-51) << x[i];
  }
}

}  // namespace
}  // namespace softgpu::testing
