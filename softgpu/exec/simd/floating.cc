// f32 and f64 arithmetic. Rounding modes other than nearest and .ftz come from MXCSR, which a
// wrapper around the row sets (decode_arithmetic.cc); so nothing here may be constant-folded or
// contracted.
#include "softgpu/exec/simd/numbers.h"

namespace softgpu::exec {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

template <class T>
struct BitsOf;
template <>
struct BitsOf<float> {
  using type = u32;
};
template <>
struct BitsOf<double> {
  using type = u64;
};
template <class T>
using Bits = typename BitsOf<T>::type;
template <class T>
constexpr Bits<T> kSign = Bits<T>(1) << (sizeof(T) * 8 - 1);

// Single-precision results have one NaN; double keeps the operand's, as the hardware does.
[[gnu::always_inline]] inline float Result(float x) { return CanonicalNan(x); }
[[gnu::always_inline]] inline double Result(double x) { return x; }

[[gnu::always_inline]] inline float Root(float x) { return __builtin_sqrtf(x); }
[[gnu::always_inline]] inline double Root(double x) { return __builtin_sqrt(x); }
[[gnu::always_inline]] inline float Fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
[[gnu::always_inline]] inline double Fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

template <class T>
const Inst* Add(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return Result(a + b); });
}
template <class T>
const Inst* Sub(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return Result(a - b); });
}
template <class T>
const Inst* Mul(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return Result(a * b); });
}
template <class T>
const Inst* Div(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return Result(a / b); });
}
// The reciprocal of a large divisor is 0 on the hardware, which has no subnormal ones.
const Inst* DivApprox(const Inst* ip, Warp* w) {
  return Map2<float, float, float>(ip, w, [](float a, float b) {
    const bool large = __builtin_fabsf(b) > 0x1p126f;
    return Result(a / (large ? __builtin_copysignf(__builtin_inff(), b) : b));
  });
}
template <class T>
const Inst* Fma(const Inst* ip, Warp* w) {
  return Map3<T, T, T, T>(ip, w, [](T a, T b, T c) { return Result(Fused(a, b, c)); });
}
template <class T>
const Inst* Rcp(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return Result(T(1) / a); });
}
template <class T>
const Inst* Sqrt(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return Result(Root(a)); });
}
template <class T>
const Inst* Rsqrt(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return Result(T(1.0 / Root(double(a)))); });
}
template <class T>
const Inst* Abs(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return As<T>(Bits<T>(As<Bits<T>>(a) & ~kSign<T>)); });
}
template <class T>
const Inst* Neg(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return As<T>(Bits<T>(As<Bits<T>>(a) ^ kSign<T>)); });
}
template <class T>
const Inst* Min(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return Result(Minimum<T, Bits<T>>(a, b)); });
}
template <class T>
const Inst* Max(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return Result(Maximum<T, Bits<T>>(a, b)); });
}
const Inst* MinNan(const Inst* ip, Warp* w) {
  return Map2<float, float, float>(ip, w, [](float a, float b) {
    return Result(a != a || b != b ? a + b : Minimum<float, u32>(a, b));
  });
}
const Inst* MaxNan(const Inst* ip, Warp* w) {
  return Map2<float, float, float>(ip, w, [](float a, float b) {
    return Result(a != a || b != b ? a + b : Maximum<float, u32>(a, b));
  });
}
// .xorsign.abs: the magnitude of the result, with the product of the operands' signs.
template <bool kMax, bool kNan>
const Inst* Xorsign(const Inst* ip, Warp* w) {
  return Map2<float, float, float>(ip, w, [](float a, float b) {
    const u32 sign = (As<u32>(a) ^ As<u32>(b)) & kSign<float>;
    const float x = As<float>(As<u32>(a) & ~kSign<float>),
                y = As<float>(As<u32>(b) & ~kSign<float>);
    const float least = Minimum<float, u32>(x, y), most = Maximum<float, u32>(x, y);
    const float r = kNan && (a != a || b != b) ? As<float>(kNan32) : kMax ? most : least;
    return r != r ? As<float>(kNan32) : As<float>(As<u32>(r) | sign);
  });
}
template <class T>
const Inst* Copysign(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) {
    return As<T>(Bits<T>((As<Bits<T>>(a) & kSign<T>) | (As<Bits<T>>(b) & ~kSign<T>)));
  });
}
// NaN becomes +0.
template <class T>
const Inst* Saturate(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return a > T(0) ? (a < T(1) ? a : T(1)) : T(0); });
}
const Inst* Flush(const Inst* ip, Warp* w) {
  return Map1<u32, u32>(ip, w, [](u32 a) { return (a & 0x7f800000) == 0 ? a & 0x80000000 : a; });
}
template <class T>
const Inst* Relu(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return a > T(0) ? a : a != a ? a : T(0); });
}
// The mantissa's upper half is kept, the rest of a reciprocal is left to the program's refinement.
const Inst* RcpApproxFtzF64(const Inst* ip, Warp* w) {
  return Map1<u64, double>(ip, w, [](double a) {
    const u64 in = As<u64>(a);
    const bool tiny = (in & 0x7ff0000000000000) == 0;
    const double inverse = 1.0 / a;
    const u64 out = As<u64>(inverse);
    const bool small = (out & 0x7ff0000000000000) == 0;
    const u64 sign = in & kSign<double>;
    const u64 kept = out & 0xffffffff00000000;
    const u64 value = inverse != inverse ? 0x7fffffff00000000 : small ? sign : kept;
    return tiny ? sign | 0x7ff0000000000000 : value;
  });
}
const Inst* RsqrtApproxFtzF64(const Inst* ip, Warp* w) {
  return Map1<u64, double>(ip, w, [](double a) {
    const u64 in = As<u64>(a);
    const bool tiny = (in & 0x7ff0000000000000) == 0;
    const double inverse = 1.0 / Root(a);
    const u64 value =
        inverse != inverse ? 0x7fffffff00000000 : As<u64>(inverse) & 0xffffffff00000000;
    return tiny ? (in & kSign<double>) | 0x7ff0000000000000 : value;
  });
}

// imm is the TestKind; bits of a class test are worked out on the integer image.
template <class T>
const Inst* Testp(const Inst* ip, Warp* w) {
  using B = Bits<T>;
  constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
  const B infinity = As<B>(T(__builtin_inf()));
  const u64 kind = ip->imm;
  return Test2<T>(ip, w, [infinity, kind](T a, T) {
    const B size = As<B>(a) & ~kSign<T>;
    switch (static_cast<ptx::TestKind>(kind)) {
      case ptx::TestKind::kFinite:
        return size < infinity;
      case ptx::TestKind::kInfinite:
        return size == infinity;
      case ptx::TestKind::kNumber:
        return size <= infinity;
      case ptx::TestKind::kNotANumber:
        return size > infinity;
      case ptx::TestKind::kNormal:
        return size >= (B(1) << kMantissa) && size < infinity;
      case ptx::TestKind::kSubnormal:
        return size != 0 && size < (B(1) << kMantissa);
    }
    return false;
  });
}

using enum Op;
using enum Type;
using enum Internal;
constexpr int kApproximate = 1;

#define BOTH(op, F) \
  {Key(op, kF32), F<float>}, { Key(op, kF64), F<double> }

constexpr HandlerRow kRows[] = {
    BOTH(kAdd, Add),
    BOTH(kSub, Sub),
    BOTH(kMul, Mul),
    BOTH(kMad, Fma),
    BOTH(kFma, Fma),
    BOTH(kDiv, Div),
    BOTH(kRcp, Rcp),
    BOTH(kSqrt, Sqrt),
    BOTH(kRsqrt, Rsqrt),
    BOTH(kAbs, Abs),
    BOTH(kNeg, Neg),
    BOTH(kMin, Min),
    BOTH(kMax, Max),
    BOTH(kCopysign, Copysign),
    BOTH(kTestp, Testp),
    BOTH(kSaturate, Saturate),
    BOTH(kRelu, Relu),
    {Key(kMin, kF32, 1), MinNan},
    {Key(kMax, kF32, 1), MaxNan},
    {Key(kMin, kF32, 2), Xorsign<false, false>},
    {Key(kMin, kF32, 3), Xorsign<false, true>},
    {Key(kMax, kF32, 2), Xorsign<true, false>},
    {Key(kMax, kF32, 3), Xorsign<true, true>},
    {Key(kDiv, kF32, kApproximate), DivApprox},
    {Key(kRcp, kF64, kApproximate), RcpApproxFtzF64},
    {Key(kRsqrt, kF64, kApproximate), RsqrtApproxFtzF64},
    {Key(kFlush, kF32), Flush},
};

}  // namespace
}  // namespace softgpu::exec

SOFTGPU_ROWS(Floating, kRows)
