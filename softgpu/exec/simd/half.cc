// f16 and bf16 arithmetic, single and packed. add, sub and mul are exact enough in f32 that
// rounding twice equals rounding once; fma keeps a sticky bit (OddSum).
#include "softgpu/exec/simd/numbers.h"

namespace softgpu::exec {
namespace {

using u16 = uint16_t;
using u32 = uint32_t;

// One scalar function, both shapes: 16-bit registers and halves of 32-bit ones.
template <class F>
const Inst* Scalar1(const Inst* ip, Warp* w) {
  return Map1<u16, u16>(ip, w, [](u16 a) { return F::Do(a); });
}
template <class F>
const Inst* Pair1(const Inst* ip, Warp* w) {
  return Map1<u32, u32>(ip, w,
                        [](u32 a) { return u32(F::Do(u16(a))) | u32(F::Do(u16(a >> 16))) << 16; });
}
template <class F>
const Inst* Scalar2(const Inst* ip, Warp* w) {
  return Map2<u16, u16, u16>(ip, w, [](u16 a, u16 b) { return F::Do(a, b); });
}
template <class F>
const Inst* Pair2(const Inst* ip, Warp* w) {
  return Map2<u32, u32, u32>(ip, w, [](u32 a, u32 b) {
    return u32(F::Do(u16(a), u16(b))) | u32(F::Do(u16(a >> 16), u16(b >> 16))) << 16;
  });
}
template <class F>
const Inst* Scalar3(const Inst* ip, Warp* w) {
  return Map3<u16, u16, u16, u16>(ip, w, [](u16 a, u16 b, u16 c) { return F::Do(a, b, c); });
}
template <class F>
const Inst* Pair3(const Inst* ip, Warp* w) {
  return Map3<u32, u32, u32, u32>(ip, w, [](u32 a, u32 b, u32 c) {
    return u32(F::Do(u16(a), u16(b), u16(c))) | u32(F::Do(u16(a >> 16), u16(b >> 16), u16(c >> 16)))
                                                    << 16;
  });
}

template <class H>
struct Add {
  static u16 Do(u16 a, u16 b) { return H::FromFloat(H::ToFloat(a) + H::ToFloat(b)); }
};
template <>
struct Add<Bf16> {
  static u16 Do(u16 a, u16 b) {
    return FloatToBf16(OddFloat(OddSum(Bf16ToFloat(a), Bf16ToFloat(b))));
  }
};
template <class H>
struct Sub {
  static u16 Do(u16 a, u16 b) { return Add<H>::Do(a, u16(b ^ 0x8000)); }
};
template <class H>
struct Mul {
  static u16 Do(u16 a, u16 b) { return H::FromFloat(H::ToFloat(a) * H::ToFloat(b)); }
};
template <>
struct Mul<Bf16> {
  static u16 Do(u16 a, u16 b) {  // the product may be a subnormal float
    return FloatToBf16(OddFloat(double(Bf16ToFloat(a)) * double(Bf16ToFloat(b))));
  }
};
template <class H>
struct Fma {
  static u16 Do(u16 a, u16 b, u16 c) {
    const double product = double(H::ToFloat(a)) * double(H::ToFloat(b));
    return H::FromFloat(OddFloat(OddSum(product, H::ToFloat(c))));
  }
};
template <class H>
struct FmaRelu {
  static u16 Do(u16 a, u16 b, u16 c) {
    const u16 r = Fma<H>::Do(a, b, c);
    return (r & 0x8000) != 0 ? 0 : r;
  }
};
template <class H>
struct Abs {
  static u16 Do(u16 a) { return a & 0x7fff; }
};
template <class H>
struct Neg {
  static u16 Do(u16 a) { return a ^ 0x8000; }
};
template <class H>
struct Min {
  static u16 Do(u16 a, u16 b) {
    return H::FromFloat(Minimum<float, u32>(H::ToFloat(a), H::ToFloat(b)));
  }
};
template <class H>
struct Max {
  static u16 Do(u16 a, u16 b) {
    return H::FromFloat(Maximum<float, u32>(H::ToFloat(a), H::ToFloat(b)));
  }
};
template <class H>
struct MinNan {
  static u16 Do(u16 a, u16 b) {
    const float x = H::ToFloat(a), y = H::ToFloat(b);
    return x != x || y != y ? kNan16 : Min<H>::Do(a, b);
  }
};
template <class H>
struct MaxNan {
  static u16 Do(u16 a, u16 b) {
    const float x = H::ToFloat(a), y = H::ToFloat(b);
    return x != x || y != y ? kNan16 : Max<H>::Do(a, b);
  }
};
// .xorsign.abs: the magnitude of the result, with the product of the operands' signs.
template <class H, template <class> class F>
struct Xorsign {
  static u16 Do(u16 a, u16 b) {
    const u16 r = F<H>::Do(a & 0x7fff, b & 0x7fff);
    const float x = H::ToFloat(r);
    return x != x ? kNan16 : u16(r | ((a ^ b) & 0x8000));
  }
};
template <class H>
struct MinXorsign : Xorsign<H, Min> {};
template <class H>
struct MaxXorsign : Xorsign<H, Max> {};
template <class H>
struct MinNanXorsign : Xorsign<H, MinNan> {};
template <class H>
struct MaxNanXorsign : Xorsign<H, MaxNan> {};
// .satfinite: infinity becomes the number before it.
template <class H>
struct Finite {
  static constexpr u16 kInfinity = H::kType == Type::kF16 ? 0x7c00 : 0x7f80;
  static u16 Do(u16 a) { return u16((a & 0x7fff) == kInfinity ? a - 1 : a); }
};
template <class H>
struct Saturate {
  static u16 Do(u16 a) {
    const float x = H::ToFloat(a);
    return H::FromFloat(x > 0 ? (x < 1 ? x : 1.0f) : 0.0f);
  }
};
template <class H>
struct Relu {
  static u16 Do(u16 a) {
    const float x = H::ToFloat(a);
    return x != x ? kNan16 : (a & 0x8000) != 0 ? u16(0) : a;
  }
};
// f16 only: subnormal halves are flushed by .ftz.
struct Flush {
  static u16 Do(u16 a) { return (a & 0x7c00) == 0 ? a & 0x8000 : a; }
};

using enum Op;
using enum Type;
using enum Internal;

#define FORMAT(H, arity, F, op, variant)               \
  {Key(op, H::kType, variant), Scalar##arity<F<H>>}, { \
    Key(op, H::kPair, variant), Pair##arity<F<H>>      \
  }
#define HALVES(op, arity, F, variant) \
  FORMAT(Half, arity, F, op, variant), FORMAT(Bf16, arity, F, op, variant)

constexpr HandlerRow kRows[] = {
    HALVES(kAdd, 2, Add, 0),
    HALVES(kSub, 2, Sub, 0),
    HALVES(kMul, 2, Mul, 0),
    HALVES(kFma, 3, Fma, 0),
    HALVES(kFma, 3, FmaRelu, 1),
    HALVES(kAbs, 1, Abs, 0),
    HALVES(kNeg, 1, Neg, 0),
    HALVES(kMin, 2, Min, 0),
    HALVES(kMax, 2, Max, 0),
    HALVES(kMin, 2, MinNan, 1),
    HALVES(kMax, 2, MaxNan, 1),
    HALVES(kMin, 2, MinXorsign, 2),
    HALVES(kMax, 2, MaxXorsign, 2),
    HALVES(kMin, 2, MinNanXorsign, 3),
    HALVES(kMax, 2, MaxNanXorsign, 3),
    HALVES(kFinite, 1, Finite, 0),
    HALVES(kSaturate, 1, Saturate, 0),
    HALVES(kRelu, 1, Relu, 0),
    {Key(kFlush, kF16), Scalar1<Flush>},
    {Key(kFlush, kF16x2), Pair1<Flush>},
};

}  // namespace
}  // namespace softgpu::exec

SOFTGPU_ROWS(Half, kRows)
