// ex2, lg2, sin, cos, tanh: evaluated in double and rounded once, far inside the bounds of the CUDA
// documents and the same on every processor.
#include "softgpu/exec/simd/numbers.h"

namespace softgpu::exec {
namespace {

using u64 = uint64_t;

constexpr double kRound = 0x1.8p52;  // x + kRound has the integer nearest to x in its low bits

[[gnu::always_inline]] inline double Exp2(double x) {
  x = x > 1000 ? 1000 : x;
  x = x < -1000 ? -1000 : x;
  const double shifted = x + kRound;
  const double r = (x - (shifted - kRound)) * 0x1.62e42fefa39efp-1;  // ln 2
  double p = 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return p * As<double>((As<u64>(shifted) + 1023) << 52);
}

const Inst* Ex2(const Inst* ip, Warp* w) {
  return Map1<float, float>(ip, w, [](float a) { return CanonicalNan(float(Exp2(a))); });
}

// A float is never subnormal as a double, so its exponent field tells all.
const Inst* Lg2(const Inst* ip, Warp* w) {
  return Map1<float, float>(ip, w, [](float a) {
    const double x = a;
    const u64 bits = As<u64>(x);
    // Mantissa in [sqrt(1/2), sqrt(2)): the exponent of the mantissa's upper part goes along.
    const u64 shifted = bits - 0x3fe6a09e667f3bcd;
    const double exponent =
        As<double>(((shifted + 0x4000000000000000) >> 52) | 0x4330000000000000) - (0x1p52 + 1024);
    const double m = As<double>((shifted & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
    const double s = (m - 1) / (m + 1);
    const double s2 = s * s;
    double p = 1.0 / 15;
    p = p * s2 + 1.0 / 13;
    p = p * s2 + 1.0 / 11;
    p = p * s2 + 1.0 / 9;
    p = p * s2 + 1.0 / 7;
    p = p * s2 + 1.0 / 5;
    p = p * s2 + 1.0 / 3;
    p = p * s2 + 1.0;
    const double log = exponent + p * s * 0x1.71547652b82fep+1;  // 2 / ln 2
    const float nan = As<float>(kNan32);
    float result = float(log);
    result = a == __builtin_inff() ? a : result;
    result = a == 0 ? -__builtin_inff() : result;
    return a < 0 || a != a ? nan : result;
  });
}

// Turns of a quarter beyond the nearest multiple of pi/2; `quarter` 0 for sin, 1 for cos.
[[gnu::always_inline]] inline float Sine(float a, u64 quarter) {
  const double x = a;
  const double shifted = x * 0x1.45f306dc9c883p-1 + kRound;  // 2 / pi
  const double n = shifted - kRound;
  const double r = (x - n * 0x1.921fb54442d18p+0) - n * 0x1.1a62633145c07p-54;
  const u64 q = As<u64>(shifted) + quarter;
  const double r2 = r * r;
  double s = -1.0 / 39916800;
  s = s * r2 + 1.0 / 362880;
  s = s * r2 - 1.0 / 5040;
  s = s * r2 + 1.0 / 120;
  s = s * r2 - 1.0 / 6;
  s = s * r2 * r + r;
  double c = 1.0 / 479001600;
  c = c * r2 - 1.0 / 3628800;
  c = c * r2 + 1.0 / 40320;
  c = c * r2 - 1.0 / 720;
  c = c * r2 + 1.0 / 24;
  c = c * r2 - 0.5;
  c = c * r2 + 1.0;
  const double chosen = (q & 1) != 0 ? c : s;
  const double value = As<double>(As<u64>(chosen) ^ (q & 2) << 62);
  return CanonicalNan(float(value));
}

const Inst* Sin(const Inst* ip, Warp* w) {
  return Map1<float, float>(ip, w, [](float a) { return Sine(a, 0); });
}
const Inst* Cos(const Inst* ip, Warp* w) {
  return Map1<float, float>(ip, w, [](float a) { return Sine(a, 1); });
}

[[gnu::always_inline]] inline float HyperbolicTangent(float a) {
  const double x = a;
  const double x2 = x * x;
  const double small = x * (1 + x2 * (-1.0 / 3 + x2 * (2.0 / 15 - x2 * (17.0 / 315))));
  const double t = Exp2(x * 0x1.71547652b82fep+1);  // e^(2x)
  const double large = 1 - 2 / (t + 1);
  return CanonicalNan(float(x2 < 0.01 ? small : large));
}
const Inst* Tanh(const Inst* ip, Warp* w) {
  return Map1<float, float>(ip, w, [](float a) { return HyperbolicTangent(a); });
}

template <class H>
const Inst* Ex2Half(const Inst* ip, Warp* w) {
  return Map1<uint16_t, uint16_t>(
      ip, w, [](uint16_t a) { return H::FromFloat(float(Exp2(H::ToFloat(a)))); });
}
template <class H>
const Inst* TanhHalf(const Inst* ip, Warp* w) {
  return Map1<uint16_t, uint16_t>(
      ip, w, [](uint16_t a) { return H::FromFloat(HyperbolicTangent(H::ToFloat(a))); });
}
template <class H, class F>
const Inst* Pair(const Inst* ip, Warp* w, F f) {
  return Map1<uint32_t, uint32_t>(ip, w, [f](uint32_t a) {
    const uint32_t low = H::FromFloat(f(H::ToFloat(uint16_t(a))));
    const uint32_t high = H::FromFloat(f(H::ToFloat(uint16_t(a >> 16))));
    return low | high << 16;
  });
}
template <class H>
const Inst* Ex2Pair(const Inst* ip, Warp* w) {
  return Pair<H>(ip, w, [](float a) { return float(Exp2(a)); });
}
template <class H>
const Inst* TanhPair(const Inst* ip, Warp* w) {
  return Pair<H>(ip, w, [](float a) { return HyperbolicTangent(a); });
}

using enum Op;
using enum Type;

constexpr HandlerRow kRows[] = {
    {Key(kEx2, kF32), Ex2},
    {Key(kLg2, kF32), Lg2},
    {Key(kSin, kF32), Sin},
    {Key(kCos, kF32), Cos},
    {Key(kTanh, kF32), Tanh},
    {Key(kEx2, kF16), Ex2Half<Half>},
    {Key(kEx2, kBF16), Ex2Half<Bf16>},
    {Key(kEx2, kF16x2), Ex2Pair<Half>},
    {Key(kEx2, kBF16x2), Ex2Pair<Bf16>},
    {Key(kTanh, kF16), TanhHalf<Half>},
    {Key(kTanh, kBF16), TanhHalf<Bf16>},
    {Key(kTanh, kF16x2), TanhPair<Half>},
    {Key(kTanh, kBF16x2), TanhPair<Bf16>},
};

}  // namespace
}  // namespace softgpu::exec

SOFTGPU_ROWS(Approx, kRows)
