// Integer and bit instructions on edge values, all pairs, against C++.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <type_traits>

#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

template <class T>
std::vector<T> Edges() {
  std::vector<T> values = {T(0),
                           T(1),
                           T(2),
                           T(3),
                           T(7),
                           T(-1),
                           T(-2),
                           T(0x5a),
                           T(0xa5a5a5a5a5a5a5a5ull),
                           T(0x123456789abcdef0ull)};
  const T top = T(std::make_unsigned_t<T>(1) << (sizeof(T) * 8 - 1));
  const T below = T(std::make_unsigned_t<T>(top) - 1);
  values.insert(values.end(), {top, below, T(top + 1), T(below >> 1)});
  return values;
}

template <class In, class Out = In>
void CheckPairs(const char* type, const char* out_type, const std::string& body,
                const std::type_identity_t<std::function<Out(In, In)>>& want) {
  std::vector<In> a, b;
  for (In x : Edges<In>()) {
    for (In y : Edges<In>()) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const std::vector<Out> got = RunElements<In, Out>(type, out_type, body, a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(got[i], want(a[i], b[i])) << body << " of " << +a[i] << ", " << +b[i];
  }
}

using s128 = __int128;
using u128 = unsigned __int128;

TEST(Integer, AddSubMul) {
  CheckPairs<uint32_t>("u32", "u32", "add.u32 %d, %a, %b;", [](auto a, auto b) { return a + b; });
  CheckPairs<uint16_t>("u16", "u16", "sub.s16 %d, %a, %b;", [](auto a, auto b) { return a - b; });
  CheckPairs<uint64_t>("u64", "u64", "mul.lo.s64 %d, %a, %b;",
                       [](auto a, auto b) { return a * b; });
  CheckPairs<uint16_t>("u16", "u16", "mul.lo.u16 %d, %a, %b;",
                       [](auto a, auto b) { return uint32_t{a} * b; });
  CheckPairs<int32_t>("s32", "s32", "mul.hi.s32 %d, %a, %b;",
                      [](auto a, auto b) { return int32_t((int64_t{a} * b) >> 32); });
  CheckPairs<uint64_t>("u64", "u64", "mul.hi.u64 %d, %a, %b;",
                       [](auto a, auto b) { return uint64_t((u128{a} * b) >> 64); });
  CheckPairs<int64_t>("s64", "s64", "mul.hi.s64 %d, %a, %b;",
                      [](auto a, auto b) { return int64_t((s128{a} * b) >> 64); });
  CheckPairs<int32_t, int64_t>("s32", "s64", "mul.wide.s32 %d, %a, %b;",
                               [](auto a, auto b) { return int64_t{a} * b; });
  CheckPairs<uint32_t, uint64_t>("u32", "u64", "mov.u64 %l0, 5; mad.wide.u32 %d, %a, %b, %l0;",
                                 [](auto a, auto b) { return uint64_t{a} * b + 5; });
  CheckPairs<int32_t>("s32", "s32", "add.sat.s32 %d, %a, %b;", [](auto a, auto b) {
    return int32_t(std::clamp<int64_t>(int64_t{a} + b, INT32_MIN, INT32_MAX));
  });
  CheckPairs<int32_t>("s32", "s32", "sub.sat.s32 %d, %a, %b;", [](auto a, auto b) {
    return int32_t(std::clamp<int64_t>(int64_t{a} - b, INT32_MIN, INT32_MAX));
  });
  CheckPairs<int32_t>("s32", "s32", "mul24.lo.s32 %d, %a, %b;",
                      [](auto a, auto b) { return int32_t(int64_t{a << 8 >> 8} * (b << 8 >> 8)); });
  CheckPairs<int32_t>("s32", "s32", "sad.s32 %d, %a, %b, 9;",
                      [](auto a, auto b) { return int32_t(9 + std::abs(int64_t{a} - b)); });
}

TEST(Integer, DivisionByAnything) {
  CheckPairs<int32_t>("s32", "s32", "div.s32 %d, %a, %b;", [](auto a, auto b) {
    return b == 0 ? -1 : b == -1 ? int32_t(0u - uint32_t(a)) : a / b;
  });
  CheckPairs<uint64_t>("u64", "u64", "rem.u64 %d, %a, %b;",
                       [](auto a, auto b) { return b == 0 ? a : a % b; });
  CheckPairs<int64_t>("s64", "s64", "rem.s64 %d, %a, %b;", [](auto a, auto b) {
    return b == 0 ? a : b == -1 ? 0 : a % b;
  });
}

TEST(Integer, MinMaxFollowTheSign) {
  CheckPairs<int32_t>("s32", "s32", "min.s32 %d, %a, %b;",
                      [](auto a, auto b) { return std::min(a, b); });
  CheckPairs<uint32_t>("u32", "u32", "max.u32 %d, %a, %b;",
                       [](auto a, auto b) { return std::max(a, b); });
  CheckPairs<int64_t>("s64", "s64", "max.s64 %d, %a, %b;",
                      [](auto a, auto b) { return std::max(a, b); });
  CheckPairs<int16_t>("s16", "s16", "min.s16 %d, %a, %b;",
                      [](auto a, auto b) { return std::min(a, b); });
}

TEST(Integer, Comparisons) {
  CheckPairs<int32_t, uint32_t>("s32", "u32", "setp.lt.s32 %p, %a, %b; selp.u32 %d, 1, 0, %p;",
                                [](auto a, auto b) { return a < b; });
  CheckPairs<uint32_t>("u32", "u32", "setp.hi.u32 %p, %a, %b; selp.u32 %d, 1, 0, %p;",
                       [](auto a, auto b) { return a > b; });
  CheckPairs<int64_t, uint32_t>("s64", "u32",
                                "setp.ge.s64 %p|%q, %a, %b; selp.u32 %r0, 1, 0, %p; selp.u32 %r1, "
                                "2, 0, %q; add.u32 %d, %r0, %r1;",
                                [](auto a, auto b) { return a >= b ? 1 : 2; });
  CheckPairs<int32_t, uint32_t>(
      "s32", "u32",
      "setp.gt.s32 %q, %a, 5; setp.ne.and.s32 %p|%q, %a, %b, !%q; selp.u32 %r0, 1, 0, %p; selp.u32 "
      "%r1, 2, 0, %q; add.u32 %d, %r0, %r1;",
      [](auto a, auto b) { return (a != b && a <= 5 ? 1u : 0u) + (a == b && a <= 5 ? 2u : 0u); });
  CheckPairs<int32_t>("s32", "s32", "set.lt.s32.s32 %d, %a, %b;",
                      [](auto a, auto b) { return a < b ? -1 : 0; });
  CheckPairs<int32_t>("s32", "s32", "slct.s32.s32 %d, %a, %b, %b;",
                      [](auto a, auto b) { return b >= 0 ? a : b; });
}

TEST(Integer, Shifts) {
  CheckPairs<uint32_t>("u32", "u32", "shl.b32 %d, %a, %b;",
                       [](auto a, auto b) { return b > 31 ? 0 : a << b; });
  CheckPairs<int32_t>("s32", "s32", "shr.s32 %d, %a, %b;",
                      [](auto a, auto b) { return a >> (uint32_t(b) > 31 ? 31 : b); });
  CheckPairs<uint64_t>("u64", "u64", "cvt.u32.u64 %r0, %b; shr.u64 %d, %a, %r0;",
                       [](auto a, auto b) { return uint32_t(b) > 63 ? 0 : a >> uint32_t(b); });
  CheckPairs<uint32_t>("u32", "u32", "shf.l.wrap.b32 %d, %a, %b, 13;",
                       [](auto a, auto b) { return b << 13 | a >> 19; });
  CheckPairs<uint32_t>("u32", "u32", "shf.r.clamp.b32 %d, %a, %b, 40;",
                       [](auto, auto b) { return b; });
  // A count that is known of each lane when the kernel is compiled, and 0 in the first.
  const std::string first = "setp.eq.u32 %p, %r0, 0; selp.u32 %d, %r1, ";
  CheckPairs<uint32_t>(
      "u32", "u32", "mov.u32 %r0, %laneid; shf.r.clamp.b32 %r1, %a, %b, %r0; " + first + "%a, %p;",
      [](auto a, auto) { return a; });
  CheckPairs<uint32_t>(
      "u32", "u32", "mov.u32 %r0, %laneid; shf.l.wrap.b32 %r1, %a, %b, %r0; " + first + "%b, %p;",
      [](auto, auto b) { return b; });
}

TEST(Integer, BitFields) {
  CheckPairs<int32_t>("s32", "s32", "bfe.s32 %d, %a, 5, 9;",
                      [](auto a, auto) { return a << 18 >> 23; });
  CheckPairs<uint32_t>("u32", "u32", "bfe.u32 %d, %a, 28, 9;",
                       [](auto a, auto) { return a >> 28; });
  CheckPairs<int32_t>("s32", "s32", "bfe.s32 %d, %a, 28, 9;", [](auto a, auto) { return a >> 28; });
  CheckPairs<uint32_t>("u32", "u32", "bfi.b32 %d, %a, %b, 8, 12;",
                       [](auto a, auto b) { return (b & ~0xfff00u) | (a << 8 & 0xfff00u); });
  CheckPairs<uint64_t>("u64", "u64", "bfi.b64 %d, %a, %b, 32, 32;",
                       [](auto a, auto b) { return (b & 0xffffffff) | a << 32; });
  CheckPairs<int32_t, uint32_t>("s32", "u32", "bfind.s32 %d, %a;", [](auto a, auto) {
    const uint32_t bits = a < 0 ? ~uint32_t(a) : a;
    return bits == 0 ? ~0u : 31u - __builtin_clz(bits);
  });
  CheckPairs<uint64_t, uint32_t>("u64", "u32", "bfind.shiftamt.u64 %d, %a;",
                                 [](auto a, auto) { return a == 0 ? ~0u : __builtin_clzll(a); });
  CheckPairs<uint32_t>("u32", "u32", "brev.b32 %d, %a;", [](auto a, auto) {
    uint32_t r = 0;
    for (int i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
    return r;
  });
  CheckPairs<uint64_t, uint32_t>(
      "u64", "u32", "popc.b64 %r0, %a; clz.b64 %r1, %a; mad.lo.u32 %d, %r0, 100, %r1;",
      [](auto a, auto) {
        return 100 * __builtin_popcountll(a) + (a == 0 ? 64 : __builtin_clzll(a));
      });
}

TEST(Integer, Lop3TakesEveryTable) {
  const std::vector<uint32_t> a = {0xf0f0f0f0}, b = {0xcccccccc}, c = {0xaaaaaaaa};
  for (uint32_t table = 0; table < 256; ++table) {
    const std::string body = "lop3.b32 %d, %a, %b, %c, " + std::to_string(table) + ";";
    const uint32_t got = RunElements<uint32_t, uint32_t>("u32", "u32", body, a, b, c)[0];
    ASSERT_EQ(got, table * 0x01010101u) << table;
  }
}

TEST(Integer, PrmtPicksBytes) {
  const std::vector<uint32_t> a = {0x33221100}, b = {0x77665544};
  const auto run = [&](const std::string& body) {
    return RunElements<uint32_t, uint32_t>("u32", "u32", body, a, b)[0];
  };
  EXPECT_EQ(run("prmt.b32 %d, %a, %b, 0x7531;"), 0x77553311u);
  EXPECT_EQ(run("mov.u32 %r0, 0x80; prmt.b32 %d, %a, %r0, 0xc408;"), 0xff800000u);
  EXPECT_EQ(run("prmt.b32.f4e %d, %a, %b, 1;"), 0x44332211u);
  EXPECT_EQ(run("prmt.b32.rc16 %d, %a, %b, 1;"), 0x33223322u);
}

TEST(Integer, CarryChainsMake128Bits) {
  CheckPairs<uint64_t>("u64", "u64",
                       "mov.b64 {%r0, %r1}, %a; mov.b64 {%r2, %r3}, %b; add.cc.u32 %r4, %r0, %r2;"
                       "addc.u32 %r5, %r1, %r3; mov.b64 %d, {%r4, %r5};",
                       [](auto a, auto b) { return a + b; });
  CheckPairs<uint64_t>("u64", "u64",
                       "mov.b64 {%r0, %r1}, %a; mov.b64 {%r2, %r3}, %b; sub.cc.u32 %r4, %r0, %r2;"
                       "subc.cc.u32 %r5, %r1, %r3; mov.b64 %d, {%r4, %r5};",
                       [](auto a, auto b) { return a - b; });
  CheckPairs<uint64_t>("u64", "u64", "mad.lo.cc.u64 %l0, %a, %b, %a; madc.hi.u64 %d, %a, %b, 3;",
                       [](auto a, auto b) { return uint64_t((u128{a} * b + a) >> 64) + 3; });
}

TEST(Integer, GuardsKeepWhatTheyMask) {
  CheckPairs<int32_t>(
      "s32", "s32",
      "mov.s32 %d, 77; setp.lt.s32 %p, %a, %b; @%p mov.s32 %d, %a; @!%p add.s32 %d, %d, 1;",
      [](auto a, auto b) { return a < b ? a : 78; });
  // A guarded comparison into its own guard.
  CheckPairs<int32_t, uint32_t>(
      "s32", "u32",
      "setp.gt.s32 %p, %a, 0; @%p setp.lt.and.s32 %p|%q, %b, 0, %p; selp.u32 %d, 1, 0, %p;",
      [](auto a, auto b) { return a > 0 && b < 0; });
}

}  // namespace
}  // namespace softgpu::testing
