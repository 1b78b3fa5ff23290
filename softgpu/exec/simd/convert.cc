// cvt. decode_convert.cc brings every conversion to these steps, with temporaries between them:
// integers of any width (with saturation), f32/f64 to and from 32- and 64-bit integers, and the
// float formats. Rounding of f64 to f32 and of integers to floats follows MXCSR.
#include "softgpu/exec/simd/numbers.h"

namespace softgpu::exec {
namespace {

using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s32 = int32_t;
using s64 = int64_t;

// Integer to integer between registers of D and S. imm holds the types:
// bits 0-7 source bits, 8 source signed, 16-23 result bits, 24 result signed, 32 saturate.
template <class D, class S>
const Inst* IntegerToInteger(const Inst* ip, Warp* w) {
  const u32 in_shift = 64 - (ip->imm & 255), out_shift = 64 - (ip->imm >> 16 & 255);
  const bool in_signed = (ip->imm >> 8 & 1) != 0, out_signed = (ip->imm >> 24 & 1) != 0;
  const bool saturate = (ip->imm >> 32 & 1) != 0;
  const s64 top = s64(~0ull >> (out_shift + (out_signed ? 1 : 0)));
  const s64 bottom = out_signed ? -top - 1 : 0;
  return Map1<D, S>(ip, w, [=](S a) {
    u64 v = u64(a) << in_shift;
    v = in_signed ? u64(s64(v) >> in_shift) : v >> in_shift;
    if (saturate) {
      const bool negative = in_signed && s64(v) < 0;
      const bool above = !negative && v > u64(top);
      const bool below = negative && s64(v) < bottom;
      v = above ? u64(top) : below ? u64(bottom) : v;
    }
    v <<= out_shift;
    return D(out_signed ? u64(s64(v) >> out_shift) : v >> out_shift);
  });
}
// The common ones without shifts: D(S) by C++'s rules.
template <class D, class S>
const Inst* Extend(const Inst* ip, Warp* w) {
  return Map1<D, S>(ip, w, [](S a) { return D(a); });
}

template <int kMode>
[[gnu::always_inline]] inline float Integral(float x) {
  return kMode == 0   ? __builtin_rintf(x)
         : kMode == 1 ? __builtin_truncf(x)
         : kMode == 2 ? __builtin_floorf(x)
                      : __builtin_ceilf(x);
}
template <int kMode>
[[gnu::always_inline]] inline double Integral(double x) {
  return kMode == 0   ? __builtin_rint(x)
         : kMode == 1 ? __builtin_trunc(x)
         : kMode == 2 ? __builtin_floor(x)
                      : __builtin_ceil(x);
}

// Out of range goes to the nearest end. NaN is 0, or only the top bit when a 64-bit type takes
// part.
template <class D, class S, int kMode>
const Inst* FloatToInteger(const Inst* ip, Warp* w) {
  constexpr bool is_signed = D(-1) < D(0);
  constexpr int bits = sizeof(D) * 8 - (is_signed ? 1 : 0);
  constexpr D top = D(~u64(0) >> (64 - bits));
  constexpr D bottom = is_signed ? D(-top - 1) : D(0);
  constexpr D nan = sizeof(S) == 8 || sizeof(D) == 8 ? D(u64(1) << (sizeof(D) * 8 - 1)) : D(0);
  const S limit = S(u64(1) << (bits - 1)) * 2;  // 2^bits, exact
  return Map1<D, S>(ip, w, [limit](S a) {
    const S r = Integral<kMode>(a);
    const bool above = r >= limit;
    const bool below = is_signed ? r < -limit : r < S(0);
    const bool in_range = !above && !below && r == r;
    const D value = D(in_range ? r : S(0));
    return a != a ? nan : above ? top : below ? bottom : value;
  });
}
template <class D, class S>
const Inst* IntegerToFloat(const Inst* ip, Warp* w) {
  return Map1<D, S>(ip, w, [](S a) { return D(a); });
}

const Inst* F32ToF64(const Inst* ip, Warp* w) {
  return Map1<double, float>(ip, w, [](float a) { return double(a); });
}
const Inst* F64ToF32(const Inst* ip, Warp* w) {
  return Map1<float, double>(ip, w, [](double a) { return CanonicalNan(float(a)); });
}
const Inst* F64ToOdd(const Inst* ip, Warp* w) {
  return Map1<float, double>(ip, w, [](double a) { return OddFloat(a); });
}
const Inst* F16ToF32(const Inst* ip, Warp* w) {
  return Map1<float, u16>(ip, w, [](u16 a) { return CanonicalNan(HalfToFloat(a)); });
}
const Inst* BF16ToF32(const Inst* ip, Warp* w) {
  return Map1<float, u16>(ip, w, [](u16 a) { return CanonicalNan(Bf16ToFloat(a)); });
}

// Rounding that is not to nearest: from the nearest value a step towards where it should have gone.
template <class H>
u16 Directed(float x, u32 mode) {
  const u16 h = H::FromFloat(x);
  const float back = H::ToFloat(h);
  if (x != x || back == x) return h;
  const bool is_above = back > x, negative = (h & 0x8000) != 0;
  const bool want_below = mode == 1 ? !negative : mode == 2;  // 1: zero, 2: down, 3: up
  if (is_above != want_below) return h;
  // Towards zero the magnitude shrinks; zero crosses to the smallest of the other sign never.
  const bool shrink = want_below != negative;
  if (h == 0 || h == 0x8000) return want_below ? u16(0x8001) : u16(0x0001);
  return u16(h + (shrink ? -1 : 1));
}
template <class H>
const Inst* F32ToHalf(const Inst* ip, Warp* w) {
  return Map1<u16, float>(ip, w, [](float a) { return H::FromFloat(a); });
}
template <class H, int kMode>
const Inst* F32ToHalfDirected(const Inst* ip, Warp* w) {
  return Map1<u16, float>(ip, w, [](float a) { return Directed<H>(a, kMode); });
}
// Two floats into a pair: a is the upper half.
template <class H>
const Inst* F32ToPair(const Inst* ip, Warp* w) {
  return Map2<u32, float, float>(
      ip, w, [](float a, float b) { return u32(H::FromFloat(a)) << 16 | H::FromFloat(b); });
}
template <class H, int kMode>
const Inst* F32ToPairDirected(const Inst* ip, Warp* w) {
  return Map2<u32, float, float>(ip, w, [](float a, float b) {
    return u32(Directed<H>(a, kMode)) << 16 | Directed<H>(b, kMode);
  });
}
// tf32 keeps 10 bits of the mantissa; variant 0 rounds ties away (rna), 1 to even, 2 towards zero.
template <int kMode>
const Inst* F32ToTf32(const Inst* ip, Warp* w) {
  return Map1<u32, u32>(ip, w, [](u32 a) {
    const u32 half = kMode == 0 ? 0x1000 : kMode == 1 ? 0xfff + (a >> 13 & 1) : 0;
    const u32 rounded = (a + half) & ~0x1fffu;
    return (a & 0x7fffffff) > 0x7f800000 ? kNan32 : (a & 0x7fffffff) == 0x7f800000 ? a : rounded;
  });
}
// .satfinite of tf32.
const Inst* FiniteTf32(const Inst* ip, Warp* w) {
  return Map1<u32, u32>(ip, w,
                        [](u32 a) { return (a & 0x7fffffff) == 0x7f800000 ? a - 0x2000 : a; });
}
template <class T, int kMode>
const Inst* ToIntegral(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return Integral<kMode>(a); });
}

// fp8 by its fields; rounding to nearest even with saturation to the largest finite value.
template <int kExponentBits>
float Fp8ToFloat(u32 v) {
  constexpr int mantissa_bits = 7 - kExponentBits, bias = (1 << (kExponentBits - 1)) - 1;
  const u32 exponent = v >> mantissa_bits & ((1u << kExponentBits) - 1);
  const u32 mantissa = v & ((1u << mantissa_bits) - 1);
  const bool is_e4m3 = kExponentBits == 4;
  const bool top = exponent == (1u << kExponentBits) - 1;
  const bool nan = top && (is_e4m3 ? mantissa == 7 : mantissa != 0);
  if (nan) return As<float>(kNan32);
  if (top && !is_e4m3) return (v & 128) != 0 ? -__builtin_inff() : __builtin_inff();
  const float size =
      exponent == 0 ? float(mantissa) * As<float>(u32(127 + 1 - bias - mantissa_bits) << 23)
                    : As<float>((exponent + 127 - bias) << 23 | mantissa << (23 - mantissa_bits));
  return (v & 128) != 0 ? -size : size;
}
template <int kExponentBits>
u32 FloatToFp8(float x) {
  constexpr int mantissa_bits = 7 - kExponentBits, bias = (1 << (kExponentBits - 1)) - 1;
  constexpr float largest = kExponentBits == 4 ? 448.0f : 57344.0f;
  const u32 bits = As<u32>(x), sign = bits >> 24 & 128;
  if (x != x) return 0x7f;
  float size = As<float>(bits & 0x7fffffff);
  if (size > largest) size = largest;
  const int exponent = int(As<u32>(size) >> 23) - 127;
  const int least = 1 - bias;
  const int unit = (exponent < least ? least : exponent) - mantissa_bits;  // of the last place
  const float scaled = __builtin_rintf(size * As<float>(u32(127 - unit) << 23));
  u32 value = u32(scaled);  // mantissa with its leading one, or a subnormal
  if (exponent >= least) value += u32(exponent - least) << mantissa_bits;
  return sign | value;
}
template <int kExponentBits>
const Inst* F32ToFp8Pair(const Inst* ip, Warp* w) {
  return Map2<u16, float, float>(ip, w, [](float a, float b) {
    return u16(FloatToFp8<kExponentBits>(a) << 8 | FloatToFp8<kExponentBits>(b));
  });
}
template <int kExponentBits>
const Inst* F16PairToFp8Pair(const Inst* ip, Warp* w) {
  return Map1<u16, u32>(ip, w, [](u32 a) {
    return u16(FloatToFp8<kExponentBits>(HalfToFloat(u16(a >> 16))) << 8 |
               FloatToFp8<kExponentBits>(HalfToFloat(u16(a))));
  });
}
template <int kExponentBits>
const Inst* Fp8PairToF16Pair(const Inst* ip, Warp* w) {
  return Map1<u32, u16>(ip, w, [](u16 a) {
    return u32(FloatToHalf(Fp8ToFloat<kExponentBits>(a >> 8))) << 16 |
           FloatToHalf(Fp8ToFloat<kExponentBits>(a & 255));
  });
}

using enum Op;
using enum Type;

// Register widths stand for the types of IntegerToInteger: variant 200.
constexpr int kGeneral = 200;
#define WIDTHS(D, type)                                              \
  {Key(kCvt, type, kGeneral, kB16), IntegerToInteger<D, u16>},       \
      {Key(kCvt, type, kGeneral, kB32), IntegerToInteger<D, u32>}, { \
    Key(kCvt, type, kGeneral, kB64), IntegerToInteger<D, u64>        \
  }
#define MODES(F, D, S, to, from)                                              \
  {Key(kCvt, to, 0, from), F<D, S, 0>}, {Key(kCvt, to, 1, from), F<D, S, 1>}, \
      {Key(kCvt, to, 2, from), F<D, S, 2>}, {                                 \
    Key(kCvt, to, 3, from), F<D, S, 3>                                        \
  }
#define INTEGERS_FROM(S, from)                                                          \
  MODES(FloatToInteger, s32, S, kS32, from), MODES(FloatToInteger, u32, S, kU32, from), \
      MODES(FloatToInteger, s64, S, kS64, from), MODES(FloatToInteger, u64, S, kU64, from)
#define FLOAT_FROM(D, to)                                 \
  {Key(kCvt, to, 0, kS32), IntegerToFloat<D, s32>},       \
      {Key(kCvt, to, 0, kU32), IntegerToFloat<D, u32>},   \
      {Key(kCvt, to, 0, kS64), IntegerToFloat<D, s64>}, { \
    Key(kCvt, to, 0, kU64), IntegerToFloat<D, u64>        \
  }
#define HALF(H, type, pair)                                                                      \
  {Key(kCvt, type, 0, kF32), F32ToHalf<H>}, {Key(kCvt, type, 1, kF32), F32ToHalfDirected<H, 1>}, \
      {Key(kCvt, type, 2, kF32), F32ToHalfDirected<H, 2>},                                       \
      {Key(kCvt, type, 3, kF32), F32ToHalfDirected<H, 3>},                                       \
      {Key(kCvt, pair, 0, kF32), F32ToPair<H>}, {                                                \
    Key(kCvt, pair, 1, kF32), F32ToPairDirected<H, 1>                                            \
  }

constexpr HandlerRow kRows[] = {
    WIDTHS(u16, kB16),
    WIDTHS(u32, kB32),
    WIDTHS(u64, kB64),
    {Key(kCvt, kB64, 0, kU32), Extend<u64, u32>},
    {Key(kCvt, kB64, 0, kS32), Extend<s64, s32>},
    {Key(kCvt, kB32, 0, kU64), Extend<u32, u64>},
    {Key(kCvt, kB32, 0, kU16), Extend<u32, u16>},
    {Key(kCvt, kB32, 0, kS16), Extend<s32, int16_t>},
    {Key(kCvt, kB16, 0, kU32), Extend<u16, u32>},
    INTEGERS_FROM(float, kF32),
    INTEGERS_FROM(double, kF64),
    FLOAT_FROM(float, kF32),
    FLOAT_FROM(double, kF64),
    {Key(kCvt, kF64, 0, kF32), F32ToF64},
    {Key(kCvt, kF32, 0, kF64), F64ToF32},
    {Key(kCvt, kF32, 4, kF64), F64ToOdd},
    {Key(kCvt, kF32, 0, kF16), F16ToF32},
    {Key(kCvt, kF32, 0, kBF16), BF16ToF32},
    HALF(Half, kF16, kF16x2),
    HALF(Bf16, kBF16, kBF16x2),
    {Key(kCvt, kTF32, 0, kF32), F32ToTf32<0>},
    {Key(kCvt, kTF32, 1, kF32), F32ToTf32<1>},
    {Key(kCvt, kTF32, 2, kF32), F32ToTf32<2>},
    {Key(Internal::kFinite, kTF32), FiniteTf32},
    {Key(kCvt, kF32, 10, kF32), ToIntegral<float, 0>},
    {Key(kCvt, kF32, 11, kF32), ToIntegral<float, 1>},
    {Key(kCvt, kF32, 12, kF32), ToIntegral<float, 2>},
    {Key(kCvt, kF32, 13, kF32), ToIntegral<float, 3>},
    {Key(kCvt, kF64, 10, kF64), ToIntegral<double, 0>},
    {Key(kCvt, kF64, 11, kF64), ToIntegral<double, 1>},
    {Key(kCvt, kF64, 12, kF64), ToIntegral<double, 2>},
    {Key(kCvt, kF64, 13, kF64), ToIntegral<double, 3>},
    {Key(kCvt, kE4M3x2, 0, kF32), F32ToFp8Pair<4>},
    {Key(kCvt, kE5M2x2, 0, kF32), F32ToFp8Pair<5>},
    {Key(kCvt, kE4M3x2, 0, kF16x2), F16PairToFp8Pair<4>},
    {Key(kCvt, kE5M2x2, 0, kF16x2), F16PairToFp8Pair<5>},
    {Key(kCvt, kF16x2, 0, kE4M3x2), Fp8PairToF16Pair<4>},
    {Key(kCvt, kF16x2, 0, kE5M2x2), Fp8PairToF16Pair<5>},
};

}  // namespace
}  // namespace softgpu::exec

SOFTGPU_ROWS(Convert, kRows)
