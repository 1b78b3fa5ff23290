// Video instructions on edge and random words, against the parts taken apart in C++.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

using Want = std::function<uint32_t(uint32_t, uint32_t, uint32_t)>;

void Check(const std::string& body, const Want& want) {
  std::vector<uint32_t> a, b, c;
  std::mt19937 random(21);
  const uint32_t edges[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fffffff, 0x80000000, ~0u};
  for (uint32_t x : edges) {
    for (uint32_t y : edges) {
      a.push_back(x);
      b.push_back(y);
      c.push_back(static_cast<uint32_t>(random()));
    }
  }
  for (int i = 0; i < 1000; ++i) {
    a.push_back(static_cast<uint32_t>(random()));
    b.push_back(static_cast<uint32_t>(random()));
    c.push_back(static_cast<uint32_t>(random()));
  }
  const std::vector<uint32_t> got = RunElements<uint32_t, uint32_t>("b32", "b32", body, a, b, c);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], want(a[i], b[i], c[i])) << body << " of " << a[i] << ", " << b[i];
  }
}

TEST(Video, WordsAndTheirParts) {
  Check("vadd.s32.u32.s32.sat %d, %a, %b;", [](uint32_t a, uint32_t b, uint32_t) {
    return uint32_t(std::clamp<int64_t>(int64_t{a} + int32_t(b), INT32_MIN, INT32_MAX));
  });
  Check("vabsdiff.u32.s32.s32.add %d, %a.b1, %b.b3, %c;", [](uint32_t a, uint32_t b, uint32_t c) {
    return c + uint32_t(std::abs(int8_t(a >> 8) - int8_t(b >> 24)));
  });
  Check("vmax.s32.s32.s32.min %d, %a.h1, %b.h0, %c;", [](uint32_t a, uint32_t b, uint32_t c) {
    return uint32_t(std::min<int>(std::max(int16_t(a >> 16), int16_t(b)), int32_t(c)));
  });
  Check("vsub.s32.u32.u32.sat %d.b2, %a.b0, %b.b0, %c;", [](uint32_t a, uint32_t b, uint32_t c) {
    const int value = std::clamp(int(a & 255) - int(b & 255), -128, 127);
    return (c & 0xff00ffff) | uint32_t(value & 255) << 16;
  });
  Check("vshl.u32.u32.u32.clamp %d, %a, %b.b0;",
        [](uint32_t a, uint32_t b, uint32_t) { return (b & 255) >= 32 ? 0 : a << (b & 255); });
  Check("vshr.s32.s32.u32.wrap %d, %a, %b;",
        [](uint32_t a, uint32_t b, uint32_t) { return uint32_t(int32_t(a) >> (b & 31)); });
  Check("vset.u32.s32.lt %d, %a, %b;",
        [](uint32_t a, uint32_t b, uint32_t) { return uint32_t(int64_t{a} < int32_t(b)); });
  Check("vmad.s32.s32.s32.shr7 %d, %a.h0, %b.h1, %c;", [](uint32_t a, uint32_t b, uint32_t c) {
    return uint32_t((int64_t{int16_t(a)} * int16_t(b >> 16) + int32_t(c)) >> 7);
  });
}

// Applies `f` to parts of `width` bits.
Want Parts(int width, bool is_signed, const std::function<int(int, int)>& f, bool sums = false) {
  return [=](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t packed = 0, sum = c;
    for (int shift = 0; shift < 32; shift += width) {
      const auto part = [&](uint32_t x) {
        const uint32_t top = x >> shift << (32 - width);
        return is_signed ? int32_t(top) >> (32 - width) : int32_t(top >> (32 - width));
      };
      const int value = f(part(a), part(b));
      packed |= (uint32_t(value) & ((1u << width) - 1)) << shift;
      sum += uint32_t(value);
    }
    return sums ? sum : packed;
  };
}

TEST(Video, HalvesAndBytesAtOnce) {
  const auto abs_diff = [](int a, int b) { return std::abs(a - b); };
  Check("vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;", Parts(8, false, abs_diff, true));
  Check("vabsdiff2.u32.s32.s32 %d, %a, %b, %c;", Parts(16, true, abs_diff));
  Check("vadd4.u32.u32.u32.sat %d, %a, %b, %c;",
        Parts(8, false, [](int a, int b) { return std::min(a + b, 255); }));
  Check("vsub2.s32.s32.s32.sat %d, %a, %b, %c;",
        Parts(16, true, [](int a, int b) { return std::clamp(a - b, -32768, 32767); }));
  Check("vmin4.s32.s32.s32 %d, %a, %b, %c;",
        Parts(8, true, [](int a, int b) { return std::min(a, b); }));
  Check("vmax2.u32.u32.u32 %d, %a, %b, %c;",
        Parts(16, false, [](int a, int b) { return std::max(a, b); }));
  Check("vavrg4.u32.u32.u32 %d, %a, %b, %c;",
        Parts(8, false, [](int a, int b) { return (a + b + 1) / 2; }));
  Check("vset4.u32.u32.ge %d, %a, %b, %c;",
        Parts(8, false, [](int a, int b) { return a >= b ? 1 : 0; }));
}

}  // namespace
}  // namespace softgpu::testing
