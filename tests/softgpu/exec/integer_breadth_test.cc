// The rarer integer instructions against C++, on edge and random values.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

struct Words {
  std::vector<uint32_t> a, b, c;
};

Words Operands() {
  const std::vector<uint32_t> edges = {0,          1,          2,          5,          31,
                                       32,         33,         64,         0x7f,       0x80,
                                       0xff,       0x7fff,     0x8000,     0xffff,     0x10000,
                                       0x7fffffff, 0x80000000, 0xffff8000, 0xfffffffe, 0xffffffff};
  Words words;
  std::mt19937 random(11);
  for (uint32_t x : edges) {
    for (uint32_t y : edges) {
      words.a.push_back(x);
      words.b.push_back(y);
      words.c.push_back(edges[random() % edges.size()]);
    }
  }
  for (int i = 0; i < 2000; ++i) {
    words.a.push_back(static_cast<uint32_t>(random()));
    words.b.push_back(i % 2 == 0 ? static_cast<uint32_t>(random()) : random() % 40);
    words.c.push_back(static_cast<uint32_t>(random()));
  }
  return words;
}

void Check(const std::string& body,
           const std::function<uint32_t(uint32_t, uint32_t, uint32_t)>& want) {
  const Words words = Operands();
  const std::vector<uint32_t> got =
      RunElements<uint32_t, uint32_t>("b32", "b32", body, words.a, words.b, words.c);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], want(words.a[i], words.b[i], words.c[i]))
        << body << " of " << words.a[i] << ", " << words.b[i] << ", " << words.c[i];
  }
}

uint32_t Mask(uint64_t position, uint64_t width) {
  uint32_t mask = 0;
  for (uint64_t bit = position; bit < position + width && bit < 32; ++bit) mask |= 1u << bit;
  return mask;
}

TEST(IntegerBreadth, MasksAndExtensions) {
  Check("bmsk.clamp.b32 %d, %a, %b;", [](uint32_t a, uint32_t b, uint32_t) { return Mask(a, b); });
  Check("bmsk.wrap.b32 %d, %a, %b;",
        [](uint32_t a, uint32_t b, uint32_t) { return Mask(a % 32, b % 32); });
  const auto extend = [](uint32_t a, uint32_t width, bool is_signed) -> uint32_t {
    if (width >= 32) return a;
    const uint32_t low = a & ((1u << width) - 1);
    const bool negative = is_signed && width > 0 && (a >> (width - 1) & 1) != 0;
    return negative ? low - (1u << width) : low;
  };
  Check("szext.clamp.s32 %d, %a, %b;",
        [&](uint32_t a, uint32_t b, uint32_t) { return extend(a, b, true); });
  Check("szext.clamp.u32 %d, %a, %b;",
        [&](uint32_t a, uint32_t b, uint32_t) { return extend(a, b, false); });
  Check("szext.wrap.s32 %d, %a, %b;",
        [&](uint32_t a, uint32_t b, uint32_t) { return extend(a, b % 32, true); });
}

TEST(IntegerBreadth, SaturatingProductsAndClampedMinima) {
  Check("mad24.hi.sat.s32 %d, %a, %b, %c;", [](uint32_t a, uint32_t b, uint32_t c) {
    const int64_t x = int32_t(a << 8) >> 8, y = int32_t(b << 8) >> 8;
    return uint32_t(std::clamp<int64_t>((x * y >> 16) + int32_t(c), INT32_MIN, INT32_MAX));
  });
  Check("min.relu.s32 %d, %a, %b;", [](uint32_t a, uint32_t b, uint32_t) {
    return uint32_t(std::max(0, std::min(int32_t(a), int32_t(b))));
  });
  Check("max.relu.s16x2 %d, %a, %b;", [](uint32_t a, uint32_t b, uint32_t) {
    const auto half = [](uint32_t x, uint32_t y) {
      return uint32_t(std::max<int>(0, std::max(int16_t(x), int16_t(y))));
    };
    return half(a, b) | half(a >> 16, b >> 16) << 16;
  });
}

TEST(IntegerBreadth, Lop3WithAPredicate) {
  const std::string select = " selp.u32 %r0, 1, 0, %q; xor.b32 %d, %d, %r0;";
  const auto table = [](uint32_t a, uint32_t b, uint32_t c) { return (a & b) | (~a & c); };
  Check("setp.gt.u32 %p, %a, %c; lop3.or.b32 %d|%q, %a, %b, %c, 0xCA, %p;" + select,
        [&](uint32_t a, uint32_t b, uint32_t c) {
          const uint32_t d = table(a, b, c);
          return d ^ uint32_t(d != 0 || a > c);
        });
  Check("setp.gt.u32 %p, %a, %c; lop3.and.b32 %d|%q, %a, %b, %c, 0xCA, !%p;" + select,
        [&](uint32_t a, uint32_t b, uint32_t c) {
          const uint32_t d = table(a, b, c);
          return d ^ uint32_t(d != 0 && a <= c);
        });
}

TEST(IntegerBreadth, PacksWithSaturation) {
  const auto clamp = [](uint32_t x, int low, int high) {
    return uint32_t(std::clamp<int64_t>(int32_t(x), low, high));
  };
  Check("cvt.pack.sat.u16.s32 %d, %a, %b;", [&](uint32_t a, uint32_t b, uint32_t) {
    return clamp(a, 0, 65535) << 16 | clamp(b, 0, 65535);
  });
  Check("cvt.pack.sat.s16.s32 %d, %a, %b;", [&](uint32_t a, uint32_t b, uint32_t) {
    return clamp(a, -32768, 32767) << 16 | (clamp(b, -32768, 32767) & 0xffff);
  });
  Check("cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c;", [&](uint32_t a, uint32_t b, uint32_t c) {
    return c << 16 | (clamp(a, -128, 127) & 255) << 8 | (clamp(b, -128, 127) & 255);
  });
  Check("cvt.pack.sat.u4.s32.b32 %d, %a, %b, %c;", [&](uint32_t a, uint32_t b, uint32_t c) {
    return c << 8 | clamp(a, 0, 15) << 4 | clamp(b, 0, 15);
  });
}

}  // namespace
}  // namespace softgpu::testing
