// Logic, shifts, bit fields, selection and broadcasts.
#include "softgpu/exec/simd/lanes.h"

namespace softgpu::exec {
namespace {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;

template <class T>
constexpr u32 kBits = sizeof(T) * 8;

template <class T>
const Inst* And(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return T(a & b); });
}
template <class T>
const Inst* Or(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return T(a | b); });
}
template <class T>
const Inst* Xor(const Inst* ip, Warp* w) {
  return Map2<T, T, T>(ip, w, [](T a, T b) { return T(a ^ b); });
}
template <class T>
const Inst* Not(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return T(~a); });
}
template <class T>
const Inst* Cnot(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return T(a == 0); });
}
template <class T>
const Inst* Move(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) { return a; });
}

// Predicates are masks: a whole warp at once. imm bit 0 negates a, bit 1 b.
template <class F>
const Inst* Logic(const Inst* ip, Warp* w, F f) {
  const u32 a = Pred(w, ip->a) ^ ((ip->imm & 1) != 0 ? kFullMask : 0);
  const u32 b = Pred(w, ip->b) ^ ((ip->imm & 2) != 0 ? kFullMask : 0);
  u32& d = Pred(w, ip->d);
  d = (d & ~w->mask) | (f(a, b) & w->mask);
  return ip + 1;
}
const Inst* AndPred(const Inst* ip, Warp* w) {
  return Logic(ip, w, [](u32 a, u32 b) { return a & b; });
}
const Inst* OrPred(const Inst* ip, Warp* w) {
  return Logic(ip, w, [](u32 a, u32 b) { return a | b; });
}
const Inst* XorPred(const Inst* ip, Warp* w) {
  return Logic(ip, w, [](u32 a, u32 b) { return a ^ b; });
}
const Inst* NotPred(const Inst* ip, Warp* w) {
  return Logic(ip, w, [](u32 a, u32) { return ~a; });
}
const Inst* MovePred(const Inst* ip, Warp* w) {
  return Logic(ip, w, [](u32 a, u32) { return a; });
}

// imm is the truth table, the same for all lanes.
const Inst* Lop3(const Inst* ip, Warp* w) {
  u32 terms[8];
  for (int k = 0; k < 8; ++k) terms[k] = (ip->imm >> k & 1) != 0 ? kFullMask : 0;
  return Map3<u32, u32, u32, u32>(ip, w, [&terms](u32 a, u32 b, u32 c) {
    const u32 low =
        (~b & ((~c & terms[0]) | (c & terms[1]))) | (b & ((~c & terms[2]) | (c & terms[3])));
    const u32 high =
        (~b & ((~c & terms[4]) | (c & terms[5]))) | (b & ((~c & terms[6]) | (c & terms[7])));
    return (~a & low) | (a & high);
  });
}

template <class T>
const Inst* Shl(const Inst* ip, Warp* w) {
  return Map2<T, T, u32>(
      ip, w, [](T a, u32 b) { return b >= kBits<T> ? T(0) : T(a << (b & (kBits<T> - 1))); });
}
template <class T>
const Inst* Shr(const Inst* ip, Warp* w) {
  return Map2<T, T, u32>(
      ip, w, [](T a, u32 b) { return b >= kBits<T> ? T(0) : T(a >> (b & (kBits<T> - 1))); });
}
template <class T>
const Inst* Sar(const Inst* ip, Warp* w) {
  return Map2<T, T, u32>(ip, w,
                         [](T a, u32 b) { return T(a >> (b < kBits<T> ? b : kBits<T> - 1)); });
}

template <bool kLeft, bool kWrap>
const Inst* Shf(const Inst* ip, Warp* w) {
  return Map3<u32, u32, u32, u32>(ip, w, [](u32 a, u32 b, u32 c) {
    const u32 n = kWrap ? (c & 31) : (c < 32 ? c : 32);
    const u64 pair = u64(b) << 32 | a;
    return kLeft ? u32((pair << n) >> 32) : u32(pair >> n);
  });
}

template <class T>
const Inst* Popc(const Inst* ip, Warp* w) {
  return Map1<u32, T>(ip, w, [](T a) { return u32(__builtin_popcountll(a)); });
}
template <class T>
const Inst* Clz(const Inst* ip, Warp* w) {
  return Map1<u32, T>(
      ip, w, [](T a) { return a == 0 ? kBits<T> : u32(__builtin_clzll(a)) - (64 - kBits<T>); });
}
// imm: return the shift that brings the bit to the top.
template <class T>
const Inst* Bfind(const Inst* ip, Warp* w) {
  const bool amount = ip->imm != 0;
  return Map1<u32, T>(ip, w, [amount](T a) {
    const u64 bits = a < 0 ? u64(~s64(a)) : u64(a);
    if (bits == 0) return ~0u;
    const u32 position = 63 - u32(__builtin_clzll(bits));
    return amount ? kBits<T> - 1 - position : position;
  });
}
template <class T>
const Inst* Brev(const Inst* ip, Warp* w) {
  return Map1<T, T>(ip, w, [](T a) {
    u64 v = a;
    v = (v >> 1 & 0x5555555555555555) | (v & 0x5555555555555555) << 1;
    v = (v >> 2 & 0x3333333333333333) | (v & 0x3333333333333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f0f0f0f0f) | (v & 0x0f0f0f0f0f0f0f0f) << 4;
    return T(__builtin_bswap64(v) >> (64 - kBits<T>));
  });
}
template <class T>
const Inst* Bfe(const Inst* ip, Warp* w) {
  return Map3<T, T, u32, u32>(ip, w, [](T a, u32 b, u32 c) {
    const u32 position = b & 255, length = c & 255;
    if (length == 0) return T(0);
    const bool is_signed = T(-1) < T(0);
    // The sign is that of the field's top bit, or of the value when the field passes its end.
    const u32 top = position + length - 1 < kBits<T> - 1 ? position + length - 1 : kBits<T> - 1;
    const u64 sign = is_signed && (u64(a) >> top & 1) != 0 ? ~0ull : 0;
    const u64 narrow = kBits<T> == 32 ? u64(u32(a)) : u64(a);
    u64 field = position < kBits<T> ? narrow >> position : 0;
    const u32 have = position < kBits<T> ? kBits<T> - position : 0;
    const u32 keep = length < have ? length : have;
    const u64 mask = keep >= 64 ? ~0ull : (1ull << keep) - 1;
    field = (field & mask) | (sign & ~mask);
    return T(field);
  });
}
// d = a inserted into b at c, e bits long.
template <class T>
const Inst* Bfi(const Inst* ip, Warp* w) {
  const u32* length_of = Reg<u32>(w, ip->e);
  const T* a = Reg<T>(w, ip->a);
  const T* b = Reg<T>(w, ip->b);
  const u32* position_of = Reg<u32>(w, ip->c);
  T* d = Reg<T>(w, ip->d);
  for (u32 m = w->mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    const u32 position = position_of[i] & 255, length = length_of[i] & 255;
    const T ones = length >= kBits<T> ? T(-1) : T((T(1) << length) - 1);
    const T mask = position >= kBits<T> ? T(0) : T(ones << position);
    d[i] = T((b[i] & ~mask) | (position >= kBits<T> ? T(0) : T(a[i] << position) & mask));
  }
  return ip + 1;
}
const Inst* Fns(const Inst* ip, Warp* w) {
  return Map3<u32, u32, u32, s32>(ip, w, [](u32 mask, u32 base, s32 offset) {
    u32 left = offset < 0 ? u32(-s64(offset)) : u32(offset);
    if (offset == 0) return base < 32 && (mask >> base & 1) != 0 ? base : ~0u;
    for (s32 at = s32(base & 31); at >= 0 && at < 32; at += offset < 0 ? -1 : 1) {
      if ((mask >> at & 1) != 0 && --left == 0) return u32(at);
    }
    return ~0u;
  });
}

// Ones from bit a on, b of them. A position or width past the word: .clamp saturates it, .wrap
// takes it modulo 32.
template <bool kWrap>
const Inst* Bmsk(const Inst* ip, Warp* w) {
  return Map2<u32, u32, u32>(ip, w, [](u32 a, u32 b) {
    const u32 from = kWrap ? a & 31 : a < 32 ? a : 32, width = kWrap ? b & 31 : b < 32 ? b : 32;
    const u64 mask = ((1ull << width) - 1) << from;
    return u32(mask);
  });
}
template <class T, bool kWrap>
const Inst* Szext(const Inst* ip, Warp* w) {
  return Map2<T, T, u32>(ip, w, [](T a, u32 b) {
    const u32 width = kWrap ? b & 31 : b < 32 ? b : 32;
    const u32 shift = width == 0 ? 0 : 32 - width;
    const T extended = T(T(u32(a) << shift) >> shift);
    return width == 0 ? T(0) : extended;
  });
}

u32 Byte(u64 pair, u32 selector) {
  const u32 byte = u32(pair >> 8 * (selector & 7)) & 255;
  return (selector & 8) != 0 ? ((byte & 128) != 0 ? 255u : 0u) : byte;
}
const Inst* Prmt(const Inst* ip, Warp* w) {
  return Map3<u32, u32, u32, u32>(ip, w, [](u32 a, u32 b, u32 c) {
    const u64 pair = u64(b) << 32 | a;
    return Byte(pair, c) | Byte(pair, c >> 4) << 8 | Byte(pair, c >> 8) << 16 |
           Byte(pair, c >> 12) << 24;
  });
}
// Selectors of the special modes, by the two low bits of c.
constexpr u16 kPrmtSelectors[7][4] = {
    {},
    {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
    {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
    {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
    {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
    {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
    {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
};
template <int kMode>
const Inst* PrmtMode(const Inst* ip, Warp* w) {
  return Map3<u32, u32, u32, u32>(ip, w, [](u32 a, u32 b, u32 c) {
    const u64 pair = u64(b) << 32 | a;
    const u32 s = kPrmtSelectors[kMode][c & 3];
    return Byte(pair, s & 7) | Byte(pair, s >> 4 & 7) << 8 | Byte(pair, s >> 8 & 7) << 16 |
           Byte(pair, s >> 12 & 7) << 24;
  });
}

// c is a predicate; imm negates it.
template <class T>
const Inst* Selp(const Inst* ip, Warp* w) {
  const T* a = Reg<T>(w, ip->a);
  const T* b = Reg<T>(w, ip->b);
  T* d = Reg<T>(w, ip->d);
  const u32 p = Pred(w, ip->c) ^ (ip->imm != 0 ? kFullMask : 0);
  const u32 m = w->mask;
  if (__builtin_expect(m == kFullMask, 1)) {
    LANES d[i] = (p >> i & 1) != 0 ? a[i] : b[i];
  } else {
    LANES {
      const T chosen = (p >> i & 1) != 0 ? a[i] : b[i];
      d[i] = (m >> i & 1) != 0 ? chosen : d[i];
    }
  }
  return ip + 1;
}
template <class T, class S>
const Inst* Slct(const Inst* ip, Warp* w) {
  return Map3<T, T, T, S>(ip, w, [](T a, T b, S c) { return c >= S(0) ? a : b; });
}

// imm into every active lane.
template <class T>
const Inst* Broadcast(const Inst* ip, Warp* w) {
  T* d = Reg<T>(w, ip->d);
  const T value = T(ip->imm);
  const u32 m = w->mask;
  LANES d[i] = (m >> i & 1) != 0 ? value : d[i];
  return ip + 1;
}

using enum Op;
using enum Type;
using enum Internal;

#define SIZES(op, F) \
  {Key(op, kU16), F<u16>}, {Key(op, kU32), F<u32>}, { Key(op, kU64), F<u64> }

constexpr HandlerRow kRows[] = {
    SIZES(kAnd, And),
    SIZES(kOr, Or),
    SIZES(kXor, Xor),
    SIZES(kNot, Not),
    SIZES(kCnot, Cnot),
    SIZES(kMov, Move),
    SIZES(kShl, Shl),
    SIZES(kShr, Shr),
    SIZES(kSelp, Selp),
    {Key(kShr, kS16), Sar<s16>},
    {Key(kShr, kS32), Sar<s32>},
    {Key(kShr, kS64), Sar<s64>},
    {Key(kAnd, kPred), AndPred},
    {Key(kOr, kPred), OrPred},
    {Key(kXor, kPred), XorPred},
    {Key(kNot, kPred), NotPred},
    {Key(kMov, kPred), MovePred},
    {Key(kLop3, kU32), Lop3},
    {Key(kShf, kU32, 0), Shf<true, false>},
    {Key(kShf, kU32, 1), Shf<false, false>},
    {Key(kShf, kU32, 2), Shf<true, true>},
    {Key(kShf, kU32, 3), Shf<false, true>},
    {Key(kPopc, kU32), Popc<u32>},
    {Key(kPopc, kU64), Popc<u64>},
    {Key(kClz, kU32), Clz<u32>},
    {Key(kClz, kU64), Clz<u64>},
    {Key(kBfind, kU32), Bfind<u32>},
    {Key(kBfind, kS32), Bfind<s32>},
    {Key(kBfind, kU64), Bfind<u64>},
    {Key(kBfind, kS64), Bfind<s64>},
    {Key(kBrev, kU32), Brev<u32>},
    {Key(kBrev, kU64), Brev<u64>},
    {Key(kBfe, kU32), Bfe<u32>},
    {Key(kBfe, kS32), Bfe<s32>},
    {Key(kBfe, kU64), Bfe<u64>},
    {Key(kBfe, kS64), Bfe<s64>},
    {Key(kBfi, kU32), Bfi<u32>},
    {Key(kBfi, kU64), Bfi<u64>},
    {Key(kFns, kU32), Fns},
    {Key(kBmsk, kU32, 0), Bmsk<false>},
    {Key(kBmsk, kU32, 1), Bmsk<true>},
    {Key(kSzext, kU32, 0), Szext<u32, false>},
    {Key(kSzext, kU32, 1), Szext<u32, true>},
    {Key(kSzext, kS32, 0), Szext<s32, false>},
    {Key(kSzext, kS32, 1), Szext<s32, true>},
    {Key(kPrmt, kU32, 0), Prmt},
    {Key(kPrmt, kU32, 1), PrmtMode<1>},
    {Key(kPrmt, kU32, 2), PrmtMode<2>},
    {Key(kPrmt, kU32, 3), PrmtMode<3>},
    {Key(kPrmt, kU32, 4), PrmtMode<4>},
    {Key(kPrmt, kU32, 5), PrmtMode<5>},
    {Key(kPrmt, kU32, 6), PrmtMode<6>},
    {Key(kSlct, kU16, 0, kS32), Slct<u16, s32>},
    {Key(kSlct, kU32, 0, kS32), Slct<u32, s32>},
    {Key(kSlct, kU64, 0, kS32), Slct<u64, s32>},
    {Key(kSlct, kU16, 0, kF32), Slct<u16, float>},
    {Key(kSlct, kU32, 0, kF32), Slct<u32, float>},
    {Key(kSlct, kU64, 0, kF32), Slct<u64, float>},
    {Key(kBroadcast, kU16), Broadcast<u16>},
    {Key(kBroadcast, kU32), Broadcast<u32>},
    {Key(kBroadcast, kU64), Broadcast<u64>},
};

}  // namespace
}  // namespace softgpu::exec

SOFTGPU_ROWS(Bits, kRows)
