// Integer arithmetic. Where signs do not matter a row is listed for the unsigned type only and
// FindHandlerBySize finds it for the others.
#include "softgpu/exec/simd/lanes.h"

namespace softgpu::exec {
namespace {

using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
using s128 = __int128;
using u128 = unsigned __int128;

template <class T>
struct WiderOf;
template <>
struct WiderOf<u16> {
  using type = u32;
};
template <>
struct WiderOf<s16> {
  using type = s32;
};
template <>
struct WiderOf<u32> {
  using type = u64;
};
template <>
struct WiderOf<s32> {
  using type = s64;
};
template <>
struct WiderOf<u64> {
  using type = u128;
};
template <>
struct WiderOf<s64> {
  using type = s128;
};
template <class T>
using Wider = typename WiderOf<T>::type;

template <class T>
struct UnsignedOf {
  using type = T;
};
template <>
struct UnsignedOf<s16> {
  using type = u16;
};
template <>
struct UnsignedOf<s32> {
  using type = u32;
};
template <>
struct UnsignedOf<s64> {
  using type = u64;
};
template <>
struct UnsignedOf<s128> {
  using type = u128;
};
template <class T>
using Unsigned = typename UnsignedOf<T>::type;

template <class T>
constexpr bool kSigned = T(-1) < T(0);
template <class T>
constexpr int kBits = sizeof(T) * 8;

template <class T>
const Inst* Add(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return T(a + b); });
}
template <class T>
const Inst* Sub(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return T(a - b); });
}
const Inst* AddSat(const Inst* ip, Warp* w) {
  return Map2<s32, s32, s32>(ip, w, [](s32 a, s32 b) {
    const s32 sum = s32(u32(a) + u32(b));
    const s32 limit = s32(0x7fffffffu + (u32(a) >> 31));
    return ((a ^ sum) & (b ^ sum)) < 0 ? limit : sum;
  });
}
const Inst* SubSat(const Inst* ip, Warp* w) {
  return Map2<s32, s32, s32>(ip, w, [](s32 a, s32 b) {
    const s32 sum = s32(u32(a) - u32(b));
    const s32 limit = s32(0x7fffffffu + (u32(a) >> 31));
    return ((a ^ b) & (a ^ sum)) < 0 ? limit : sum;
  });
}
template <class T>
const Inst* MulLo(const Inst* ip, Warp* w) {
  // Through u32 at least: u16 * u16 would promote to int and overflow.
  return Map2<T, T, T>(ip, w, [](T a, T b) { return T((a + Wider<u16>(0)) * b); });
}
template <class T>
const Inst* MulHi(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return T((Wider<T>(a) * Wider<T>(b)) >> kBits<T>); });
}
template <class T>
const Inst* MulWide(const Inst* ip, Warp* w) {
  using W = Wider<T>;
  return Map2<W, T, T>(ip, w, [](T a, T b) { return W(a) * W(b); });
}
template <class T>
const Inst* MadLo(const Inst* ip, Warp* w) {
  return Map3<T, T, T, T>(ip, w, [](T a, T b, T c) { return T((a + Wider<u16>(0)) * b + c); });
}
template <class T>
const Inst* MadHi(const Inst* ip, Warp* w) {
  return Map3<T, T, T, T>(ip, w, [](T a, T b, T c) {
    return T(Unsigned<T>((Wider<T>(a) * Wider<T>(b)) >> kBits<T>) + Unsigned<T>(c));
  });
}
const Inst* MadHiSat(const Inst* ip, Warp* w) {
  return Map3<s32, s32, s32, s32>(ip, w, [](s32 a, s32 b, s32 c) {
    const s64 sum = ((s64(a) * b) >> 32) + c;
    return s32(sum > 0x7fffffff ? 0x7fffffff : sum < -0x80000000ll ? -0x80000000ll : sum);
  });
}
template <class T>
const Inst* MadWide(const Inst* ip, Warp* w) {
  using W = Unsigned<Wider<T>>;
  return Map3<W, T, T, W>(ip, w, [](T a, T b, W c) { return W(W(Wider<T>(a) * Wider<T>(b)) + c); });
}
template <class T>
T Low24(T a) {
  return T(Unsigned<T>(a) << 8) >> 8;
}
template <class T>
const Inst* Mul24Lo(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return T(s64(Low24(a)) * s64(Low24(b))); });
}
template <class T>
const Inst* Mul24Hi(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return T((s64(Low24(a)) * s64(Low24(b))) >> 16); });
}
template <class T>
const Inst* Mad24Lo(const Inst* ip, Warp* w) {
  return Map3<T, T, T, T>(
      ip, w, [](T a, T b, T c) { return T(u64(s64(Low24(a)) * s64(Low24(b))) + u64(c)); });
}
template <class T>
const Inst* Mad24Hi(const Inst* ip, Warp* w) {
  return Map3<T, T, T, T>(
      ip, w, [](T a, T b, T c) { return T(u64((s64(Low24(a)) * s64(Low24(b))) >> 16) + u64(c)); });
}
const Inst* Mad24HiSat(const Inst* ip, Warp* w) {
  return Map3<s32, s32, s32, s32>(ip, w, [](s32 a, s32 b, s32 c) {
    const s64 sum = ((s64(Low24(a)) * s64(Low24(b))) >> 16) + c;
    return s32(sum > 0x7fffffff ? 0x7fffffff : sum < -0x80000000ll ? -0x80000000ll : sum);
  });
}
template <class T>
const Inst* Sad(const Inst* ip, Warp* w) {
  using U = Unsigned<T>;
  return Map3<T, T, T, T>(
      ip, w, [](T a, T b, T c) { return T(U(c) + (a < b ? U(b) - U(a) : U(a) - U(b))); });
}
// Division by zero gives all ones, as the hardware does; the most negative by -1 wraps.
template <class T>
const Inst* Div(const Inst* ip, Warp* w) {
  return Slow2<T, T, T>(ip, w, [](T a, T b) {
    if (b == 0) return T(-1);
    if (kSigned<T> && b == T(-1)) return T(0 - Unsigned<T>(a));
    return T(a / b);
  });
}
template <class T>
const Inst* Rem(const Inst* ip, Warp* w) {
  return Slow2<T, T, T>(ip, w, [](T a, T b) {
    if (b == 0) return a;
    if (kSigned<T> && b == T(-1)) return T(0);
    return T(a % b);
  });
}
template <class T>
const Inst* Abs(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return a < 0 ? T(0 - Unsigned<T>(a)) : a; });
}
template <class T>
const Inst* Neg(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return T(0 - a); });
}
template <class T>
const Inst* Min(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return a < b ? a : b; });
}
template <class T>
const Inst* Max(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return a > b ? a : b; });
}
// Two halves of a 32-bit register.
template <class T, class F>
const Inst* Pairs(const Inst* ip, Warp* w, F f) {
  return Map2<u32, u32, u32>(ip, w, [f](u32 a, u32 b) {
    const u16 low = u16(f(T(a), T(b)));
    const u16 high = u16(f(T(a >> 16), T(b >> 16)));
    return u32(low) | u32(high) << 16;
  });
}
template <class T>
const Inst* AddPair(const Inst* ip, Warp* w) {
  return Pairs<T>(ip, w, [](T a, T b) { return a + b; });
}
template <class T>
const Inst* MinPair(const Inst* ip, Warp* w) {
  return Pairs<T>(ip, w, [](T a, T b) { return a < b ? a : b; });
}
template <class T>
const Inst* MaxPair(const Inst* ip, Warp* w) {
  return Pairs<T>(ip, w, [](T a, T b) { return a > b ? a : b; });
}

const Inst* Relu(const Inst* ip, Warp* w) {
  return Map1<s32, s32>(ip, w, [](s32 a) { return a > 0 ? a : 0; });
}
const Inst* ReluPair(const Inst* ip, Warp* w) {
  return Map1<u32, u32>(ip, w, [](u32 a) {
    return ((a & 0x8000) != 0 ? 0 : a & 0x7fff) | ((a >> 31) != 0 ? 0 : a & 0x7fff0000);
  });
}

// The carry flag is a predicate at e; aux bit 0: read it, bit 1: write it.
template <class T, class F>
const Inst* WithCarry(const Inst* ip, Warp* w, F f) {
  const T* a = Reg<T>(w, ip->a);
  const T* b = Reg<T>(w, ip->b);
  const T* c = Reg<T>(w, ip->c);
  T* d = Reg<T>(w, ip->d);
  uint32_t& flag = Pred(w, ip->e);
  const uint32_t in = (ip->aux & 1) != 0 ? flag : 0;
  uint32_t out = 0;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    bool carry = (in >> i & 1) != 0;
    d[i] = f(a[i], b[i], c[i], &carry);
    out |= carry ? kBit[i] : 0;
  }
  if ((ip->aux & 2) != 0) flag = (flag & ~w->mask) | out;
  return ip + 1;
}
template <class T>
T Plus(T a, T b, bool* carry) {
  const u128 sum = u128(a) + b + *carry;
  *carry = (sum >> kBits<T>) != 0;
  return T(sum);
}
template <class T>
const Inst* AddCarry(const Inst* ip, Warp* w) {
  return WithCarry<T>(ip, w, [](T a, T b, T, bool* carry) { return Plus<T>(a, b, carry); });
}
template <class T>
const Inst* SubCarry(const Inst* ip, Warp* w) {
  return WithCarry<T>(ip, w, [](T a, T b, T, bool* borrow) {
    const u128 difference = u128(a) - b - *borrow;
    *borrow = (difference >> kBits<T> & 1) != 0;
    return T(difference);
  });
}
template <class T>
const Inst* MadLoCarry(const Inst* ip, Warp* w) {
  return WithCarry<T>(ip, w,
                      [](T a, T b, T c, bool* carry) { return Plus<T>(T(a * b), c, carry); });
}
template <class T>
const Inst* MadHiCarry(const Inst* ip, Warp* w) {
  using U = Unsigned<T>;
  return WithCarry<U>(ip, w, [](U a, U b, U c, bool* carry) {
    return Plus<U>(U((Wider<T>(T(a)) * Wider<T>(T(b))) >> kBits<T>), c, carry);
  });
}

template <class A, class B>
const Inst* Dp4a(const Inst* ip, Warp* w) {
  return Map3<u32, u32, u32, u32>(ip, w, [](u32 a, u32 b, u32 c) {
    for (int k = 0; k < 4; ++k) c += u32(s32(A(a >> 8 * k)) * s32(B(b >> 8 * k)));
    return c;
  });
}
template <class A, class B, int kFirst>
const Inst* Dp2a(const Inst* ip, Warp* w) {
  return Map3<u32, u32, u32, u32>(ip, w, [](u32 a, u32 b, u32 c) {
    for (int k = 0; k < 2; ++k) c += u32(s32(A(a >> 16 * k)) * s32(B(b >> 8 * (k + kFirst))));
    return c;
  });
}

using enum Op;
using enum Type;
constexpr int kLo = 1, kHi = 2, kWide = 3, kSatVariant = 8;

#define SIZES(op, F) \
  {Key(op, kU16), F<u16>}, {Key(op, kU32), F<u32>}, { Key(op, kU64), F<u64> }
#define SIGNED(op, F) \
  {Key(op, kS16), F<s16>}, {Key(op, kS32), F<s32>}, { Key(op, kS64), F<s64> }

constexpr HandlerRow kRows[] = {
    SIZES(kAdd, Add),
    SIZES(kSub, Sub),
    {Key(kAdd, kS32, kSatVariant), AddSat},
    {Key(kSub, kS32, kSatVariant), SubSat},
    {Key(kAdd, kU16x2), AddPair<u16>},
    {Key(kAdd, kS16x2), AddPair<u16>},
    {Key(kMin, kU16x2), MinPair<u16>},
    {Key(kMin, kS16x2), MinPair<s16>},
    {Key(kMax, kU16x2), MaxPair<u16>},
    {Key(kMax, kS16x2), MaxPair<s16>},
    {Key(kMul, kU16, kLo), MulLo<u16>},
    {Key(kMul, kU32, kLo), MulLo<u32>},
    {Key(kMul, kU64, kLo), MulLo<u64>},
    {Key(kMul, kU16, kHi), MulHi<u16>},
    {Key(kMul, kS16, kHi), MulHi<s16>},
    {Key(kMul, kU32, kHi), MulHi<u32>},
    {Key(kMul, kS32, kHi), MulHi<s32>},
    {Key(kMul, kU64, kHi), MulHi<u64>},
    {Key(kMul, kS64, kHi), MulHi<s64>},
    {Key(kMul, kU16, kWide), MulWide<u16>},
    {Key(kMul, kS16, kWide), MulWide<s16>},
    {Key(kMul, kU32, kWide), MulWide<u32>},
    {Key(kMul, kS32, kWide), MulWide<s32>},
    {Key(kMad, kU16, kLo), MadLo<u16>},
    {Key(kMad, kU32, kLo), MadLo<u32>},
    {Key(kMad, kU64, kLo), MadLo<u64>},
    {Key(kMad, kU16, kHi), MadHi<u16>},
    {Key(kMad, kS16, kHi), MadHi<s16>},
    {Key(kMad, kU32, kHi), MadHi<u32>},
    {Key(kMad, kS32, kHi), MadHi<s32>},
    {Key(kMad, kU64, kHi), MadHi<u64>},
    {Key(kMad, kS64, kHi), MadHi<s64>},
    {Key(kMad, kS32, kHi + kSatVariant), MadHiSat},
    {Key(kMad, kU16, kWide), MadWide<u16>},
    {Key(kMad, kS16, kWide), MadWide<s16>},
    {Key(kMad, kU32, kWide), MadWide<u32>},
    {Key(kMad, kS32, kWide), MadWide<s32>},
    {Key(kMul24, kU32, kLo), Mul24Lo<u32>},
    {Key(kMul24, kS32, kLo), Mul24Lo<s32>},
    {Key(kMul24, kU32, kHi), Mul24Hi<u32>},
    {Key(kMul24, kS32, kHi), Mul24Hi<s32>},
    {Key(kMad24, kU32, kLo), Mad24Lo<u32>},
    {Key(kMad24, kS32, kLo), Mad24Lo<s32>},
    {Key(kMad24, kU32, kHi), Mad24Hi<u32>},
    {Key(kMad24, kS32, kHi), Mad24Hi<s32>},
    {Key(kMad24, kS32, kHi + kSatVariant), Mad24HiSat},
    {Key(Internal::kRelu, kS32), Relu},
    {Key(Internal::kRelu, kS16x2), ReluPair},
    SIZES(kSad, Sad),
    SIGNED(kSad, Sad),
    SIZES(kDiv, Div),
    SIGNED(kDiv, Div),
    SIZES(kRem, Rem),
    SIGNED(kRem, Rem),
    SIGNED(kAbs, Abs),
    SIZES(kNeg, Neg),
    SIZES(kMin, Min),
    SIGNED(kMin, Min),
    SIZES(kMax, Max),
    SIGNED(kMax, Max),
    {Key(kAddc, kU32), AddCarry<u32>},
    {Key(kAddc, kU64), AddCarry<u64>},
    {Key(kSubc, kU32), SubCarry<u32>},
    {Key(kSubc, kU64), SubCarry<u64>},
    {Key(kMadc, kU32, kLo), MadLoCarry<u32>},
    {Key(kMadc, kU64, kLo), MadLoCarry<u64>},
    {Key(kMadc, kU32, kHi), MadHiCarry<u32>},
    {Key(kMadc, kS32, kHi), MadHiCarry<s32>},
    {Key(kMadc, kU64, kHi), MadHiCarry<u64>},
    {Key(kMadc, kS64, kHi), MadHiCarry<s64>},
    {Key(kDp4a, kU32, 0, kU32), Dp4a<uint8_t, uint8_t>},
    {Key(kDp4a, kU32, 0, kS32), Dp4a<uint8_t, int8_t>},
    {Key(kDp4a, kS32, 0, kU32), Dp4a<int8_t, uint8_t>},
    {Key(kDp4a, kS32, 0, kS32), Dp4a<int8_t, int8_t>},
    {Key(kDp2a, kU32, kLo, kU32), Dp2a<u16, uint8_t, 0>},
    {Key(kDp2a, kU32, kLo, kS32), Dp2a<u16, int8_t, 0>},
    {Key(kDp2a, kS32, kLo, kU32), Dp2a<s16, uint8_t, 0>},
    {Key(kDp2a, kS32, kLo, kS32), Dp2a<s16, int8_t, 0>},
    {Key(kDp2a, kU32, kHi, kU32), Dp2a<u16, uint8_t, 2>},
    {Key(kDp2a, kU32, kHi, kS32), Dp2a<u16, int8_t, 2>},
    {Key(kDp2a, kS32, kHi, kU32), Dp2a<s16, uint8_t, 2>},
    {Key(kDp2a, kS32, kHi, kS32), Dp2a<s16, int8_t, 2>},
};

}  // namespace
}  // namespace softgpu::exec

SOFTGPU_ROWS(Integer, kRows)
