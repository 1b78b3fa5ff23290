// The fast forms of ld and st: registers as wide as needed, neighbouring or equal addresses under a
// full mask as one copy, everything else lane by lane as long as it is aligned and in bounds. What
// is not goes to AccessSlowly (memory_access.cc), which knows every space and names the fault.
#include "ipc/calls/limits.h"
#include "softgpu/exec/memory_access.h"
#include "softgpu/exec/simd/lanes.h"

namespace softgpu::exec {
namespace {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

// Addresses that an instruction may touch without further questions: [low, low + size).
struct Range {
  u64 low, size;
  u64 delta;  // from an address to where it lies in this process
};

template <bool kShared>
[[gnu::always_inline]] inline Range RangeOf(const Warp* w) {
  if (kShared) return {0, w->shared_bytes, reinterpret_cast<u64>(w->shared)};
  return {ipc::limits::kWindowBase, ipc::limits::kWindowEnd - ipc::limits::kWindowBase, 0};
}

[[gnu::always_inline]] inline bool Holds(const Range& range, u64 address, u64 bytes, u64 align) {
  return address - range.low < range.size && range.size - (address - range.low) >= bytes &&
         (address & (align - 1)) == 0;
}

template <class A>
struct Pattern {
  bool contiguous, uniform;
};

// How the addresses of 32 lanes lie: `stride` apart, or all equal.
template <class A>
[[gnu::always_inline]] inline Pattern<A> PatternOf(const A* a, A stride) {
  A apart = 0, differ = 0;
  const A first = a[0];
  LANES {
    apart |= a[i] ^ (first + A(i) * stride);
    differ |= a[i] ^ first;
  }
  return {apart == 0, differ == 0};
}

// M: in memory. D: in the register. N: vector elements, at d, b, c, e.
template <class M, class D, class A, bool kShared, int N>
const Inst* Load(const Inst* ip, Warp* w) {
  constexpr u32 kBytes = sizeof(M) * N;
  const A* a = Reg<A>(w, ip->a);
  D* const d[4] = {Reg<D>(w, ip->d), Reg<D>(w, ip->b), Reg<D>(w, ip->c), Reg<D>(w, ip->e)};
  const Range range = RangeOf<kShared>(w);
  const u64 offset = ip->imm;
  w->current = ip;
  if (__builtin_expect(w->mask == kFullMask, 1)) {
    const Pattern<A> pattern = PatternOf<A>(a, kBytes);
    const u64 first = u64(a[0]) + offset;
    const M* from = reinterpret_cast<const M*>(first + range.delta);
    if (pattern.contiguous && Holds(range, first, kBytes * 32, kBytes)) {
      for (int k = 0; k < N; ++k) {
        D* to = d[k];
        LANES to[i] = D(from[i * N + k]);
      }
      return ip + 1;
    }
    if (pattern.uniform && Holds(range, first, kBytes, kBytes)) {
      for (int k = 0; k < N; ++k) {
        const D value = D(from[k]);
        D* to = d[k];
        LANES to[i] = value;
      }
      return ip + 1;
    }
  }
  // Sources and results may share a register: addresses are read before anything is written.
  A copy[32];
  if (N > 1) {
    LANES copy[i] = a[i];
    a = copy;
  }
  for (u32 m = w->mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    const u64 address = u64(a[i]) + offset;
    if (!Holds(range, address, kBytes, kBytes)) return AccessSlowly(ip, w, m);
    const M* from = reinterpret_cast<const M*>(address + range.delta);
    for (int k = 0; k < N; ++k) d[k][i] = D(from[k]);
  }
  return ip + 1;
}

template <class M, class S, class A, bool kShared, int N>
const Inst* Store(const Inst* ip, Warp* w) {
  constexpr u32 kBytes = sizeof(M) * N;
  const A* a = Reg<A>(w, ip->a);
  const S* const s[4] = {Reg<S>(w, ip->d), Reg<S>(w, ip->b), Reg<S>(w, ip->c), Reg<S>(w, ip->e)};
  const Range range = RangeOf<kShared>(w);
  const u64 offset = ip->imm;
  w->current = ip;
  if (__builtin_expect(w->mask == kFullMask, 1)) {
    const u64 first = u64(a[0]) + offset;
    if (PatternOf<A>(a, kBytes).contiguous && Holds(range, first, kBytes * 32, kBytes)) {
      M* to = reinterpret_cast<M*>(first + range.delta);
      for (int k = 0; k < N; ++k) {
        const S* from = s[k];
        LANES to[i * N + k] = M(from[i]);
      }
      return ip + 1;
    }
  }
  for (u32 m = w->mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    const u64 address = u64(a[i]) + offset;
    if (!Holds(range, address, kBytes, kBytes)) return AccessSlowly(ip, w, m);
    M* to = reinterpret_cast<M*>(address + range.delta);
    for (int k = 0; k < N; ++k) to[k] = M(s[k][i]);
  }
  return ip + 1;
}

using enum Internal;
using enum Type;

// Keys: type in memory, vector length, type of the register (its width and sign).
#define LOADS(what, A, shared)                                          \
  {Key(what, kB8, 1, kU16), Load<u8, u16, A, shared, 1>},               \
      {Key(what, kB8, 1, kU32), Load<u8, u32, A, shared, 1>},           \
      {Key(what, kB8, 1, kS16), Load<int8_t, int16_t, A, shared, 1>},   \
      {Key(what, kB8, 1, kS32), Load<int8_t, int32_t, A, shared, 1>},   \
      {Key(what, kB16, 1, kU16), Load<u16, u16, A, shared, 1>},         \
      {Key(what, kB16, 1, kU32), Load<u16, u32, A, shared, 1>},         \
      {Key(what, kB16, 1, kS32), Load<int16_t, int32_t, A, shared, 1>}, \
      {Key(what, kB16, 2, kU16), Load<u16, u16, A, shared, 2>},         \
      {Key(what, kB16, 4, kU16), Load<u16, u16, A, shared, 4>},         \
      {Key(what, kB32, 1, kU32), Load<u32, u32, A, shared, 1>},         \
      {Key(what, kB32, 2, kU32), Load<u32, u32, A, shared, 2>},         \
      {Key(what, kB32, 4, kU32), Load<u32, u32, A, shared, 4>},         \
      {Key(what, kB64, 1, kU64), Load<u64, u64, A, shared, 1>}, {       \
    Key(what, kB64, 2, kU64), Load<u64, u64, A, shared, 2>              \
  }
#define STORES(what, A, shared)                                    \
  {Key(what, kB8, 1, kU16), Store<u8, u16, A, shared, 1>},         \
      {Key(what, kB8, 1, kU32), Store<u8, u32, A, shared, 1>},     \
      {Key(what, kB16, 1, kU16), Store<u16, u16, A, shared, 1>},   \
      {Key(what, kB16, 1, kU32), Store<u16, u32, A, shared, 1>},   \
      {Key(what, kB16, 2, kU16), Store<u16, u16, A, shared, 2>},   \
      {Key(what, kB16, 4, kU16), Store<u16, u16, A, shared, 4>},   \
      {Key(what, kB32, 1, kU32), Store<u32, u32, A, shared, 1>},   \
      {Key(what, kB32, 2, kU32), Store<u32, u32, A, shared, 2>},   \
      {Key(what, kB32, 4, kU32), Store<u32, u32, A, shared, 4>},   \
      {Key(what, kB64, 1, kU64), Store<u64, u64, A, shared, 1>}, { \
    Key(what, kB64, 2, kU64), Store<u64, u64, A, shared, 2>        \
  }

constexpr HandlerRow kRows[] = {
    LOADS(kLoadFast, u64, false),      LOADS(kLoadShared32, u32, true),
    LOADS(kLoadShared64, u64, true),   STORES(kStoreFast, u64, false),
    STORES(kStoreShared32, u32, true), STORES(kStoreShared64, u64, true),
};

}  // namespace
}  // namespace softgpu::exec

SOFTGPU_ROWS(Memory, kRows)
