// cvt of the small float formats against the nearest value found by looking at all of them.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

template <class To, class From>
To As(From from) {
  return __builtin_bit_cast(To, from);
}

// A format by its fields; the values of all codes in order of size.
struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity;

  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  double Value(uint32_t code) const {
    const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
    const int mantissa = code & ((1 << mantissa_bits) - 1);
    const bool top = exponent == (1 << exponent_bits) - 1;
    const double sign = (code >> (bits() - 1)) != 0 ? -1 : 1;
    if (top && has_infinity) return mantissa == 0 ? sign * INFINITY : NAN;
    if (top && mantissa == (1 << mantissa_bits) - 1) return NAN;
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias() - mantissa_bits);
    return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias() - mantissa_bits);
  }
  uint32_t Largest() const {
    uint32_t code = (1u << (bits() - 1)) - 1;
    while (!std::isfinite(Value(code))) --code;
    return code;
  }
  // To nearest even, or towards zero; finite values only, saturating.
  uint32_t Encode(double x, bool to_zero) const {
    const uint32_t sign = std::signbit(x) ? 1u << (bits() - 1) : 0;
    const double size = std::fabs(x);
    uint32_t low = 0, high = Largest();
    if (size >= Value(high)) return sign | high;
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      (Value(middle) <= size ? low : high) = middle;
    }
    if (to_zero || Value(low) == size) return sign | low;
    const double below = size - Value(low), above = Value(high) - size;
    const bool up = above < below || (above == below && (low & 1) != 0);
    return sign | (up ? high : low);
  }
};

constexpr Format kE4M3{4, 3, false}, kE5M2{5, 2, true}, kF16{5, 10, true}, kBF16{8, 7, true};

std::vector<float> Floats() {
  std::vector<float> x = {0.0f,    -0.0f,    1.0f,     -1.0f,    448,       464,
                          465,     57344,    61440,    -70000,   65504,     65519,
                          65520,   3e38f,    -3.4e38f, INFINITY, -INFINITY, NAN,
                          0x1p-9f, 0x1p-10f, 0x3p-11f, 0x1p-24f, 0x1p-25f,  1e-40f};
  std::mt19937 random(5);
  for (int i = 0; i < 6000; ++i) {
    const uint32_t bits = static_cast<uint32_t>(random());
    // Half of them near the ranges of the formats, many of them ties.
    const uint32_t exponent = 127 - 20 + (bits >> 8) % 40;
    x.push_back(i % 2 == 0 ? As<float>(bits)
                           : As<float>((bits & 0x80000000) | exponent << 23 | (bits & 0x7f0000)));
  }
  return x;
}

struct Options {
  bool to_zero = false, relu = false;
};

// What a conversion to `format` gives; NaN has the code `nan`.
uint32_t Wanted(const Format& format, float x, uint32_t nan, Options options) {
  if (x != x) return nan;
  if (options.relu && !(x > 0)) return 0;
  return format.Encode(x, options.to_zero);
}

void CheckPacked(const std::string& name, const Format& format, uint32_t nan, Options options) {
  const std::vector<float> a = Floats();
  std::vector<float> b(a.rbegin(), a.rend());
  const bool bytes = format.bits() == 8;
  const std::string body = bytes ? "cvt." + name + ".f32 %h0, %a, %b; cvt.u32.u16 %d, %h0;"
                                 : "cvt." + name + ".f32 %d, %a, %b;";
  const std::vector<uint32_t> got = RunElements<float, uint32_t>("f32", "b32", body, a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    const uint32_t want =
        Wanted(format, a[i], nan, options) << format.bits() | Wanted(format, b[i], nan, options);
    ASSERT_EQ(got[i], want) << name << " of " << a[i] << ", " << b[i];
  }
}

TEST(Convert, FloatsToPairsThatStayFinite) {
  const Options plain, relu{false, true}, zero{true, false}, zero_relu{true, true};
  CheckPacked("rn.satfinite.e4m3x2", kE4M3, 0x7f, plain);
  CheckPacked("rn.satfinite.relu.e4m3x2", kE4M3, 0x7f, relu);
  CheckPacked("rn.satfinite.e5m2x2", kE5M2, 0x7f, plain);
  CheckPacked("rn.satfinite.relu.e5m2x2", kE5M2, 0x7f, relu);
  CheckPacked("rn.satfinite.f16x2", kF16, 0x7fff, plain);
  CheckPacked("rn.relu.satfinite.f16x2", kF16, 0x7fff, relu);
  CheckPacked("rz.satfinite.f16x2", kF16, 0x7fff, zero);
  CheckPacked("rn.satfinite.bf16x2", kBF16, 0x7fff, plain);
  CheckPacked("rz.relu.satfinite.bf16x2", kBF16, 0x7fff, zero_relu);
}

TEST(Convert, FloatsToHalvesThatStayFinite) {
  const std::vector<float> a = Floats();
  for (const auto& [type, format] : {std::pair{"f16", kF16}, std::pair{"bf16", kBF16}}) {
    const std::vector<uint16_t> got = RunElements<float, uint16_t>(
        "f32", "b16", "cvt.rn.satfinite." + std::string(type) + ".f32 %d, %a;", a);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(got[i], Wanted(format, a[i], 0x7fff, {})) << type << " of " << a[i];
    }
  }
}

TEST(Convert, AllHalvesToBytes) {
  std::vector<uint32_t> a(65536);
  for (uint32_t i = 0; i < a.size(); ++i) a[i] = i | (65535 - i) << 16;
  for (const auto& [type, format] : {std::pair{"e4m3x2", kE4M3}, std::pair{"e5m2x2", kE5M2}}) {
    for (const bool relu : {false, true}) {
      const std::string body = std::string("cvt.rn.satfinite") + (relu ? ".relu." : ".") + type +
                               ".f16x2 %h0, %a; cvt.u32.u16 %d, %h0;";
      const std::vector<uint32_t> got = RunElements<uint32_t, uint32_t>("b32", "b32", body, a);
      for (uint32_t i = 0; i < a.size(); ++i) {
        const float low = static_cast<float>(kF16.Value(i));
        ASSERT_EQ(got[i] & 255, Wanted(format, low, 0x7f, {false, relu})) << type << " " << low;
        ASSERT_EQ(got[i] >> 8, got[65535 - i] & 255);
      }
    }
  }
}

TEST(Convert, AllBytesToHalves) {
  std::vector<uint32_t> a(65536);
  for (uint32_t i = 0; i < a.size(); ++i) a[i] = i;
  for (const auto& [type, format] : {std::pair{"e4m3x2", kE4M3}, std::pair{"e5m2x2", kE5M2}}) {
    for (const bool relu : {false, true}) {
      const std::string body = std::string("cvt.u16.u32 %h0, %a; cvt.rn") + (relu ? ".relu" : "") +
                               ".f16x2." + type + " %d, %h0;";
      const std::vector<uint32_t> got = RunElements<uint32_t, uint32_t>("b32", "b32", body, a);
      for (uint32_t i = 0; i < a.size(); ++i) {
        const double want = format.Value(i & 255);
        const double value = kF16.Value(got[i] & 0xffff);
        if (want != want) {
          ASSERT_EQ(got[i] & 0xffff, 0x7fffu) << type << " " << i;
        } else {
          ASSERT_EQ(value, relu && want < 0 ? 0.0 : want) << type << " " << i;
        }
      }
    }
  }
}

TEST(Convert, Tf32ClampsAndStaysFinite) {
  constexpr Format kTf32{8, 10, true};
  const std::vector<float> a = Floats();
  for (const bool to_zero : {false, true}) {
    const std::string body =
        std::string("cvt.") + (to_zero ? "rz" : "rn") + ".relu.satfinite.tf32.f32 %d, %a;";
    const std::vector<uint32_t> got = RunElements<float, uint32_t>("f32", "b32", body, a);
    for (size_t i = 0; i < a.size(); ++i) {
      const uint32_t want =
          a[i] != a[i] ? 0x7fffffff : Wanted(kTf32, a[i], 0, {to_zero, true}) << 13;
      ASSERT_EQ(got[i], want) << a[i];
    }
  }
}

}  // namespace
}  // namespace softgpu::testing
