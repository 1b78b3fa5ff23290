// Loops over the 32 lanes of a warp, shaped so that the compiler turns them into vector code.
//
// The files of this directory are compiled once per instruction set (SOFTGPU_ISA is the namespace)
// and must emit no function that another translation unit could share: everything has internal
// linkage, and no standard header with inline functions comes in.
#pragma once

#include "softgpu/exec/handler_key.h"
#include "softgpu/exec/warp.h"

#ifndef SOFTGPU_ISA
#error "compile with -DSOFTGPU_ISA=..."
#endif

#if defined(__clang__)
#define LANES _Pragma("clang loop vectorize(assume_safety)") for (int i = 0; i < 32; ++i)
#else
#define LANES _Pragma("GCC ivdep") for (int i = 0; i < 32; ++i)
#endif

namespace softgpu::exec {
namespace {

template <class T>
[[gnu::always_inline]] inline T* Reg(Warp* w, uint32_t offset) {
  return static_cast<T*>(static_cast<void*>(__builtin_assume_aligned(w->regs + offset, 64)));
}

// A predicate register.
[[gnu::always_inline]] inline uint32_t& Pred(Warp* w, uint32_t offset) {
  return *reinterpret_cast<uint32_t*>(w->regs + offset);
}

template <class To, class From>
[[gnu::always_inline]] inline To As(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

// d[i] = f(a[i], b[i], c[i]) for active lanes; the unused sources of a shorter form cost nothing.
template <class D, class A, class B, class C, class F>
[[gnu::always_inline]] inline const Inst* Map3(const Inst* ip, Warp* w, F f) {
  D* d = Reg<D>(w, ip->d);
  const A* a = Reg<A>(w, ip->a);
  const B* b = Reg<B>(w, ip->b);
  const C* c = Reg<C>(w, ip->c);
  const uint32_t m = w->mask;
  if (__builtin_expect(m == kFullMask, 1)) {
    LANES d[i] = f(a[i], b[i], c[i]);
  } else {
    LANES d[i] = (m >> i & 1) != 0 ? f(a[i], b[i], c[i]) : d[i];
  }
  return ip + 1;
}

template <class D, class A, class B, class F>
[[gnu::always_inline]] inline const Inst* Map2(const Inst* ip, Warp* w, F f) {
  D* d = Reg<D>(w, ip->d);
  const A* a = Reg<A>(w, ip->a);
  const B* b = Reg<B>(w, ip->b);
  const uint32_t m = w->mask;
  if (__builtin_expect(m == kFullMask, 1)) {
    LANES d[i] = f(a[i], b[i]);
  } else {
    LANES d[i] = (m >> i & 1) != 0 ? f(a[i], b[i]) : d[i];
  }
  return ip + 1;
}

template <class D, class A, class F>
[[gnu::always_inline]] inline const Inst* Map1(const Inst* ip, Warp* w, F f) {
  D* d = Reg<D>(w, ip->d);
  const A* a = Reg<A>(w, ip->a);
  const uint32_t m = w->mask;
  if (__builtin_expect(m == kFullMask, 1)) {
    LANES d[i] = f(a[i]);
  } else {
    LANES d[i] = (m >> i & 1) != 0 ? f(a[i]) : d[i];
  }
  return ip + 1;
}

// For costly scalar work: only active lanes compute.
template <class D, class A, class B, class F>
[[gnu::always_inline]] inline const Inst* Slow2(const Inst* ip, Warp* w, F f) {
  D* d = Reg<D>(w, ip->d);
  const A* a = Reg<A>(w, ip->a);
  const B* b = Reg<B>(w, ip->b);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    d[i] = f(a[i], b[i]);
  }
  return ip + 1;
}

inline constexpr uint32_t kBit[32] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

// The predicate at d: bit i = f(a[i], b[i]) for active lanes.
template <class A, class F>
[[gnu::always_inline]] inline const Inst* Test2(const Inst* ip, Warp* w, F f) {
  const A* a = Reg<A>(w, ip->a);
  const A* b = Reg<A>(w, ip->b);
  uint32_t bits = 0;
  LANES bits |= f(a[i], b[i]) ? kBit[i] : 0;
  uint32_t& d = Pred(w, ip->d);
  d = (d & ~w->mask) | (bits & w->mask);
  return ip + 1;
}

}  // namespace
}  // namespace softgpu::exec

// Each file defines its table of rows and exports it under the name of the instruction set.
#define SOFTGPU_ROWS(file, table)                                            \
  namespace softgpu::exec::SOFTGPU_ISA {                                     \
  HandlerRows file##Rows() { return {table, sizeof table / sizeof *table}; } \
  }
