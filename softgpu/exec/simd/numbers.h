// Conversions between float formats without library calls, in forms that vectorise. Internal to
// simd/.
#pragma once

#include "softgpu/exec/simd/lanes.h"

namespace softgpu::exec {
namespace {

inline constexpr uint32_t kNan32 = 0x7fffffff;  // what single-precision instructions return
inline constexpr uint16_t kNan16 = 0x7fff;      // f16 and bf16

[[gnu::always_inline]] inline float CanonicalNan(float x) { return x == x ? x : As<float>(kNan32); }

[[gnu::always_inline]] inline float HalfToFloat(uint16_t h) {
  const uint32_t magnitude = uint32_t(h & 0x7fff) << 13;
  const uint32_t exponent = magnitude & 0x0f800000;
  const uint32_t normal = magnitude + ((127 - 15) << 23);
  const uint32_t special = magnitude + ((255 - 31) << 23);
  // A subnormal half: its integer mantissa scaled.
  const float subnormal = float(int32_t(h & 0x3ff)) * 0x1p-24f;
  uint32_t bits = exponent == 0 ? As<uint32_t>(subnormal) : normal;
  bits = exponent == 0x0f800000 ? special : bits;
  return As<float>(bits | uint32_t(h & 0x8000) << 16);
}

// Round to nearest even.
[[gnu::always_inline]] inline uint16_t FloatToHalf(float x) {
  const uint32_t bits = As<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t rounded = (magnitude - ((127 - 15) << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // Below 2^-14: adding 0.5 puts the unit of a subnormal half at the end of the mantissa.
  const uint32_t subnormal = As<uint32_t>(As<float>(magnitude) + 0.5f) - 0x3f000000;
  uint32_t half = magnitude < 0x38800000 ? subnormal : rounded;
  half = magnitude >= 0x477ff000 ? 0x7c00 : half;  // 65520 and more
  const bool is_nan = magnitude > 0x7f800000;
  return uint16_t(is_nan ? kNan16 : half | sign);
}

[[gnu::always_inline]] inline float Bf16ToFloat(uint16_t h) { return As<float>(uint32_t(h) << 16); }

[[gnu::always_inline]] inline uint16_t FloatToBf16(float x) {
  const uint32_t bits = As<uint32_t>(x);
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  return uint16_t(is_nan ? kNan16 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The nearest double to a + b whose last bit says whether it is exact, so that rounding it once
// more to a narrower format equals rounding the exact sum.
[[gnu::always_inline]] inline double OddSum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  const int64_t bits = As<int64_t>(sum);
  // Towards zero when the error points there, then odd.
  const bool inward = (error < 0) != (sum < 0);
  const int64_t odd = (bits - (inward ? 1 : 0)) | 1;
  return error == error && error != 0 ? As<double>(odd) : sum;
}

// The same from double to float.
[[gnu::always_inline]] inline float OddFloat(double x) {
  const float f = float(x);
  const double back = f;
  const uint32_t bits = As<uint32_t>(f);
  const double size_x = x < 0 ? -x : x, size_back = back < 0 ? -back : back;
  const uint32_t odd = (bits - (size_back > size_x ? 1 : 0)) | 1;
  return back == x || x != x ? f : As<float>(odd);
}

struct Half {
  static constexpr Type kType = Type::kF16, kPair = Type::kF16x2;
  static float ToFloat(uint16_t h) { return HalfToFloat(h); }
  static uint16_t FromFloat(float x) { return FloatToHalf(x); }
};

struct Bf16 {
  static constexpr Type kType = Type::kBF16, kPair = Type::kBF16x2;
  static float ToFloat(uint16_t h) { return Bf16ToFloat(h); }
  static uint16_t FromFloat(float x) { return FloatToBf16(x); }
};

// min and max as the ISA has them: -0 < +0, and a NaN loses against a number.
template <class T, class Bits>
[[gnu::always_inline]] inline T Minimum(T a, T b) {
  const T equal = As<T>(Bits(As<Bits>(a) | As<Bits>(b)));
  const T least = a == b ? equal : (a < b ? a : b);
  return a != a ? b : b != b ? a : least;
}
template <class T, class Bits>
[[gnu::always_inline]] inline T Maximum(T a, T b) {
  const T equal = As<T>(Bits(As<Bits>(a) & As<Bits>(b)));
  const T most = a == b ? equal : (a > b ? a : b);
  return a != a ? b : b != b ? a : most;
}

}  // namespace
}  // namespace softgpu::exec
