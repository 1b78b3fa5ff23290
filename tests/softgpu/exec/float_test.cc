// f32, f64, f16, bf16: bit for bit against C++ where the ISA fixes the result, bounds elsewhere.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <functional>
#include <random>

#include "softgpu/exec/half_scalar.h"
#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

template <class To, class From>
To As(From from) {
  return __builtin_bit_cast(To, from);
}

std::vector<float> Floats() {
  std::vector<float> values = {
      0.0f,      -0.0f,      1.0f,  -1.0f,  0.1f,     3.0f,      -2.5f, 1e-45f,
      -1e-39f,   1e-30f,     3e38f, -3e38f, INFINITY, -INFINITY, NAN,   As<float>(0xffc12345u),
      0x1p-126f, 0.99999994f};
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) values.push_back(As<float>(static_cast<uint32_t>(random())));
  return values;
}

uint32_t Canonical(float x) { return x == x ? As<uint32_t>(x) : 0x7fffffff; }

void CheckF32(const std::string& body, const std::function<float(float, float)>& want,
              int rounding = FE_TONEAREST) {
  std::vector<float> a, b;
  for (float x : Floats()) {
    for (float y : Floats()) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const std::vector<uint32_t> got = RunElements<float, uint32_t>("f32", "f32", body, a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    std::fesetround(rounding);
    volatile float x = a[i], y = b[i];
    const uint32_t expected = Canonical(want(x, y));
    std::fesetround(FE_TONEAREST);
    ASSERT_EQ(got[i], expected) << body << " of " << a[i] << ", " << b[i];
  }
}

float Flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

// The second of a pair is the first one's operands the other way round.
TEST(F32, PairsAreTwoNumbers) {
  const auto pairs = [](const std::string& instruction, const std::string& high) {
    return "{.reg .b64 %x, %y, %z; .reg .f32 %l, %h;\nmov.b64 %x, {%a, %b}; mov.b64 %y, {%b, "
           "%a};\n" +
           instruction + "\nmov.b64 {%l, %h}, %z; mov.f32 %d, " + high + ";}";
  };
  for (const std::string high : {"%l", "%h"}) {
    CheckF32(pairs("add.rn.f32x2 %z, %x, %y;", high), [](float a, float b) { return a + b; });
    CheckF32(
        pairs("add.rm.f32x2 %z, %x, %y;", high), [](float a, float b) { return a + b; },
        FE_DOWNWARD);
    CheckF32(pairs("add.rn.ftz.f32x2 %z, %x, %y;", high),
             [](float a, float b) { return Flush(Flush(a) + Flush(b)); });
    CheckF32(pairs("mul.rn.f32x2 %z, %x, %y;", high), [](float a, float b) { return a * b; });
    const float sign = high == "%l" ? 1 : -1;
    CheckF32(pairs("sub.f32x2 %z, %x, %y;", high),
             [=](float a, float b) { return sign > 0 ? a - b : b - a; });
    CheckF32(pairs("fma.rn.f32x2 %z, %x, %y, %x;", high),
             [=](float a, float b) { return std::fma(a, b, sign > 0 ? a : b); });
  }
}

TEST(F32, SmallestAndLargestOfThree) {
  const auto least = [](float a, float b) { return std::fmin(std::fmin(a, b), -1.5f); };
  CheckF32("{.reg .f32 %t; min.f32 %t, %a, 0f7F800000, %b; min.f32 %d, %b, %t, 0fBFC00000;}",
           least);
  CheckF32("{.reg .f32 %t; mov.f32 %t, 0f3FC00000; max.NaN.f32 %d, %a, %b, %t;}",
           [](float a, float b) {
             return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(std::fmax(a, b), 1.5f);
           });
}

TEST(F32, RoundsInEveryDirection) {
  const std::pair<const char*, int> modes[] = {
      {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (const auto& [name, mode] : modes) {
    const std::string r = std::string(".") + name;
    CheckF32(
        "add" + r + ".f32 %d, %a, %b;", [](float a, float b) { return a + b; }, mode);
    CheckF32(
        "mul" + r + ".f32 %d, %a, %b;", [](float a, float b) { return a * b; }, mode);
    CheckF32(
        "div" + r + ".f32 %d, %a, %b;", [](float a, float b) { return a / b; }, mode);
    CheckF32(
        "fma" + r + ".f32 %d, %a, %b, %a;", [](float a, float b) { return std::fma(a, b, a); },
        mode);
    CheckF32(
        "sqrt" + r + ".f32 %d, %a;", [](float a, float) { return std::sqrt(a); }, mode);
    CheckF32(
        "rcp" + r + ".f32 %d, %a;", [](float a, float) { return 1 / a; }, mode);
  }
}

TEST(F32, FlushesAndSaturates) {
  CheckF32("add.ftz.f32 %d, %a, %b;", [](float a, float b) { return Flush(Flush(a) + Flush(b)); });
  CheckF32("min.ftz.f32 %d, %a, %a;", [](float a, float) { return Flush(a); });
  CheckF32("add.sat.f32 %d, %a, %b;", [](float a, float b) {
    const float s = a + b;
    return s > 0 ? std::min(s, 1.0f) : 0.0f;
  });
}

TEST(F32, MinMaxOrderZerosAndNans) {
  CheckF32("min.f32 %d, %a, %b;", [](float a, float b) {
    return a == 0 && b == 0 ? (std::signbit(a) ? a : b) : std::fmin(a, b);
  });
  CheckF32("max.f32 %d, %a, %b;", [](float a, float b) {
    return a == 0 && b == 0 ? (std::signbit(a) ? b : a) : std::fmax(a, b);
  });
  CheckF32("max.NaN.f32 %d, %a, %b;", [](float a, float b) {
    if (a != a || b != b) return NAN;
    return a == 0 && b == 0 ? (std::signbit(a) ? b : a) : std::fmax(a, b);
  });
}

TEST(F32, ComparesOrderedAndNot) {
  const std::pair<const char*, bool (*)(float, float)> tests[] = {
      {"lt", [](float a, float b) { return a < b; }},
      {"ge", [](float a, float b) { return a >= b; }},
      {"ne", [](float a, float b) { return a < b || a > b; }},
      {"neu", [](float a, float b) { return a != b; }},
      {"equ", [](float a, float b) { return !(a < b || a > b); }},
      {"gtu", [](float a, float b) { return !(a <= b); }},
      {"leu", [](float a, float b) { return !(a > b); }},
      {"num", [](float a, float b) { return a == a && b == b; }},
      {"nan", [](float a, float b) { return a != a || b != b; }}};
  for (const auto& [name, compare] : tests) {
    CheckF32(
        "setp." + std::string(name) + ".f32 %p, %a, %b; selp.f32 %d, 0f3F800000, 0f00000000, %p;",
        [test = compare](float a, float b) { return test(a, b) ? 1.0f : 0.0f; });
  }
}

TEST(F32, ApproximationsKeepTheirBounds) {
  std::vector<float> x;
  std::mt19937 random(9);
  std::uniform_real_distribution<float> uniform(-3.1f, 3.1f), wide(-140, 127);
  for (int i = 0; i < 20'000; ++i) x.push_back(i % 2 == 0 ? uniform(random) : wide(random));
  const auto run = [&](const char* op) {
    return RunElements<float, float>("f32", "f32", std::string(op) + ".f32 %d, %a;", x);
  };
  const std::vector<float> e = run("ex2.approx"), l = run("lg2.approx"), s = run("sin.approx");
  const std::vector<float> c = run("cos.approx"), t = run("tanh.approx"), r = run("rsqrt.approx");
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    ASSERT_NEAR(e[i], std::exp2(v), std::ldexp(std::exp2(v), -22) + 1e-45) << v;
    ASSERT_NEAR(s[i], std::sin(v), 0x1p-20) << v;
    ASSERT_NEAR(c[i], std::cos(v), 0x1p-20) << v;
    ASSERT_NEAR(t[i], std::tanh(v), std::fabs(std::tanh(v)) * 0x1p-11) << v;
    if (v < 0) {
      ASSERT_EQ(As<uint32_t>(l[i]), 0x7fffffffu) << v;
      ASSERT_EQ(As<uint32_t>(r[i]), 0x7fffffffu) << v;
    } else {
      ASSERT_NEAR(l[i], std::log2(v), 1e-6) << v;
      ASSERT_NEAR(r[i], 1 / std::sqrt(v), 1e-6 / std::sqrt(v)) << v;
    }
  }
  const std::vector<float> special = {0.0f, INFINITY, 1e-45f, 1.0f};
  const std::vector<float> logs =
      RunElements<float, float>("f32", "f32", "lg2.approx.f32 %d, %a;", special);
  EXPECT_EQ(logs, (std::vector<float>{-INFINITY, INFINITY, -149.0f, 0.0f}));
}

TEST(F64, RoundsAndFuses) {
  std::vector<double> a, b;
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    a.push_back(As<double>(random()));
    b.push_back(As<double>(random()));
  }
  const std::vector<double> fma =
      RunElements<double, double>("f64", "f64", "fma.rn.f64 %d, %a, %b, %b;", a, b);
  const std::vector<double> down =
      RunElements<double, double>("f64", "f64", "add.rm.f64 %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    const double want = std::fma(a[i], b[i], b[i]);
    EXPECT_TRUE(want != want || fma[i] == want) << a[i] << " " << b[i];
    std::fesetround(FE_DOWNWARD);
    volatile double x = a[i], y = b[i];
    const double sum = x + y;
    std::fesetround(FE_TONEAREST);
    EXPECT_TRUE(sum != sum || down[i] == sum) << a[i] << " " << b[i];
  }
}

// Every f16 against a few partners; the reference rounds once from an exact double.
uint16_t RoundHalf(double x) {
  if (x != x) return 0x7fff;
  // Halfway cases are exact in double, so nearbyint on the scaled value decides rightly.
  const double size = std::fabs(x);
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (size >= 65520) return sign | 0x7c00;
  const int exponent = std::max(size == 0 ? -14 : std::ilogb(size), -14);
  const double units = std::nearbyint(std::ldexp(size, 10 - exponent));
  if (size < 0x1p-14) return sign | static_cast<uint16_t>(units);
  return sign | static_cast<uint16_t>(((exponent + 14) << 10) + static_cast<int>(units));
}

TEST(F16, ArithmeticOfEveryValue) {
  const uint16_t partners[] = {0x0001, 0x03ff, 0x3c00, 0xbc01, 0x3555, 0x7bff,
                               0xfbff, 0x1234, 0x8000, 0x7c00, 0x7e00};
  std::vector<uint16_t> a, b;
  for (uint16_t partner : partners) {
    for (uint32_t v = 0; v < 65536; v += 3) {
      a.push_back(static_cast<uint16_t>(v));
      b.push_back(partner);
    }
  }
  const auto run = [&](const char* body) {
    return RunElements<uint16_t, uint16_t>("b16", "b16", body, a, b);
  };
  const std::vector<uint16_t> sum = run("add.f16 %d, %a, %b;"),
                              product = run("mul.f16 %d, %a, %b;");
  const std::vector<uint16_t> fused = run("fma.rn.f16 %d, %a, %b, %b;");
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = exec::scalar::HalfToFloat(a[i]), y = exec::scalar::HalfToFloat(b[i]);
    ASSERT_EQ(sum[i], RoundHalf(x + y)) << x << " " << y;
    ASSERT_EQ(product[i], RoundHalf(x * y)) << x << " " << y;
    ASSERT_EQ(fused[i], RoundHalf(x * y + y)) << x << " " << y;
  }
}

TEST(Convert, FloatsToIntegersClamp) {
  const std::vector<float> x = Floats();
  const std::vector<int32_t> i =
      RunElements<float, int32_t>("f32", "s32", "cvt.rzi.s32.f32 %d, %a;", x);
  const std::vector<uint32_t> u =
      RunElements<float, uint32_t>("f32", "u32", "cvt.rni.u32.f32 %d, %a;", x);
  const std::vector<int64_t> l =
      RunElements<float, int64_t>("f32", "s64", "cvt.rmi.s64.f32 %d, %a;", x);
  const std::vector<uint32_t> b =
      RunElements<float, uint32_t>("f32", "u32", "cvt.rzi.u8.f32 %d, %a;", x);
  for (size_t k = 0; k < x.size(); ++k) {
    const double v = x[k];
    const bool nan = v != v;
    ASSERT_EQ(i[k], nan ? 0 : static_cast<int32_t>(std::clamp(std::trunc(v), -0x1p31, 0x1p31 - 1)))
        << v;
    ASSERT_EQ(u[k], nan ? 0 : static_cast<uint32_t>(std::clamp(std::nearbyint(v), 0.0, 0x1p32 - 1)))
        << v;
    const int64_t wide = nan || v < -0x1p63 ? INT64_MIN
                         : v >= 0x1p63      ? INT64_MAX
                                            : static_cast<int64_t>(std::floor(v));
    ASSERT_EQ(l[k], wide) << v;
    ASSERT_EQ(b[k], nan ? 0 : static_cast<uint32_t>(std::clamp(std::trunc(v), 0.0, 255.0))) << v;
  }
}

TEST(Convert, IntegersToFloatsRound) {
  std::vector<uint64_t> x = {0,
                             1,
                             ~0ull,
                             1ull << 63,
                             0xffffff8000000000,
                             0x1000001,
                             0x8000008000000000,
                             0x7fffffbfffffffff};
  const std::vector<float> near =
      RunElements<uint64_t, float>("u64", "f32", "cvt.rn.f32.u64 %d, %a;", x);
  const std::vector<float> down =
      RunElements<uint64_t, float>("u64", "f32", "cvt.rz.f32.u64 %d, %a;", x);
  const std::vector<float> sign =
      RunElements<uint64_t, float>("u64", "f32", "cvt.rn.f32.s64 %d, %a;", x);
  const std::vector<float> byte =
      RunElements<uint64_t, float>("u64", "f32", "cvt.rn.f32.s8 %d, %a;", x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(near[i], static_cast<float>(x[i]));
    EXPECT_EQ(sign[i], static_cast<float>(static_cast<int64_t>(x[i])));
    EXPECT_EQ(byte[i], static_cast<float>(static_cast<int8_t>(x[i])));
    float want = static_cast<float>(x[i]);
    if (static_cast<long double>(want) > static_cast<long double>(x[i]))
      want = std::nextafter(want, 0.0f);
    EXPECT_EQ(down[i], want) << x[i];
  }
}

TEST(Convert, HalvesBothWays) {
  std::vector<uint16_t> every;
  for (uint32_t v = 0; v < 65536; ++v) every.push_back(static_cast<uint16_t>(v));
  const std::vector<uint32_t> wide =
      RunElements<uint16_t, uint32_t>("b16", "b32", "cvt.f32.f16 %d, %a;", every);
  const std::vector<uint16_t> back = RunElements<uint16_t, uint16_t>(
      "b16", "b16", "cvt.f32.f16 %r0, %a; cvt.rn.f16.f32 %d, %r0;", every);
  const std::vector<uint16_t> brain = RunElements<uint16_t, uint16_t>(
      "b16", "b16", "cvt.f32.bf16 %r0, %a; cvt.rn.bf16.f32 %d, %r0;", every);
  for (uint32_t v = 0; v < 65536; ++v) {
    const float f = exec::scalar::HalfToFloat(every[v]);
    ASSERT_EQ(wide[v], Canonical(f)) << v;
    ASSERT_EQ(back[v], f != f ? 0x7fff : v) << v;
    const bool nan = (v & 0x7fff) > 0x7f80;
    ASSERT_EQ(brain[v], nan ? 0x7fff : v) << v;
  }
  std::vector<float> x = Floats();
  for (int i = 0; i < 4000; ++i) x.push_back(std::ldexp(1.0f + i * 0x1p-11f, i % 40 - 25));
  const std::vector<uint16_t> half =
      RunElements<float, uint16_t>("f32", "b16", "cvt.rn.f16.f32 %d, %a;", x);
  const std::vector<uint16_t> zero =
      RunElements<float, uint16_t>("f32", "b16", "cvt.rz.f16.f32 %d, %a;", x);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(half[i], RoundHalf(x[i])) << x[i];
    uint16_t want = RoundHalf(x[i]);
    if (x[i] == x[i] && std::fabs(exec::scalar::HalfToFloat(want)) > std::fabs(x[i])) --want;
    ASSERT_EQ(zero[i], want) << x[i];
  }
}

TEST(Convert, PackedHalves) {
  const std::vector<float> a = {1.5f}, b = {-2.0f};
  EXPECT_EQ((RunElements<float, uint32_t>("f32", "b32", "cvt.rn.f16x2.f32 %d, %a, %b;", a, b)[0]),
            0x3e00c000u);
  EXPECT_EQ(
      (RunElements<float, uint32_t>("f32", "b32", "cvt.rn.relu.bf16x2.f32 %d, %a, %b;", a, b)[0]),
      0x3fc00000u);
}

TEST(Convert, SmallIntegersExtendAndSaturate) {
  const std::vector<int32_t> x = {0, 1, -1, 127, 128, 255, 256, -128, -129, 40000, -40000};
  const auto run = [&](const char* body) {
    return RunElements<int32_t, int32_t>("s32", "s32", body, x);
  };
  const std::vector<int32_t> s8 = run("cvt.s32.s8 %d, %a;"), sat = run("cvt.sat.s8.s32 %d, %a;");
  const std::vector<int32_t> u16 = run("cvt.u16.u32 %h0, %a; cvt.u32.u16 %d, %h0;"),
                             usat = run("cvt.sat.u8.s32 %d, %a;");
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(s8[i], static_cast<int8_t>(x[i]));
    EXPECT_EQ(sat[i], std::clamp(x[i], -128, 127));
    EXPECT_EQ(u16[i], static_cast<uint16_t>(x[i]));
    EXPECT_EQ(usat[i], std::clamp(x[i], 0, 255));
  }
}

}  // namespace
}  // namespace softgpu::testing
