#include "replay/launch_ranges.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/replay/parsed_kernel.h"

namespace replay {
namespace {

using testing::ParsedKernel;

constexpr uint64_t kA = 0x10000, kB = 0x20000, kLaunchBytes = 0x1000;

const Memory kMemory = {
    .allocation = [](uint64_t address) -> std::optional<Range> {
      for (uint64_t base : {kA, kB}) {
        if (address >= base && address < base + kLaunchBytes) return Range{base, kLaunchBytes};
      }
      return std::nullopt;
    },
    .variable =
        [](uint32_t) {
          return Range{0x90000, 4};
        },
};

std::vector<std::byte> Parameters(std::initializer_list<uint64_t> words) {
  std::vector<std::byte> bytes(words.size() * 8);
  std::memcpy(bytes.data(), std::data(words), bytes.size());
  return bytes;
}

std::string Text(const LaunchTouches& out) {
  if (!out.unknown.empty()) return out.unknown;
  std::string text;
  for (const Touch& touch : out.touches) {
    char line[64];
    std::snprintf(line, sizeof line, "%s%llx-%llx:%c", text.empty() ? "" : " ",
                  static_cast<unsigned long long>(touch.range.begin),
                  static_cast<unsigned long long>(touch.range.end()),
                  "rwu"[static_cast<int>(touch.access)]);
    text += line;
  }
  return text;
}

const char* const kIndexed = R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3; mul.wide.s32 %rd3, %r4, 4;
    add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r5, [%rd4]; st.global.u32 [%rd5+8], %r5;)";

TEST(LaunchRangesTest, AnAffineIndexTouchesItsPartAlone) {
  const ParsedKernel parsed(".param .u64 a, .param .u64 b", kIndexed);
  const KernelAccess access = Analyse(parsed.kernel());
  const Grid grid = {.blocks = {2, 1, 1}, .threads = {32, 1, 1}};
  EXPECT_EQ(Text(TouchesOf(access, grid, Parameters({kA, kB + 0x100}), kMemory)),
            "10000-10100:r 20108-20208:w");
  EXPECT_EQ(Text(TouchesOf(access, grid, Parameters({kA, kA + 0x100}), kMemory)),
            "10000-10100:r 10108-10208:w");
  EXPECT_EQ(Text(TouchesOf(access, grid, Parameters({kA, kA + 0x80}), kMemory)),
            "10000-10088:r 10088-10100:u 10100-10188:w");
}

TEST(LaunchRangesTest, ARangeEndsWithItsAllocation) {
  const ParsedKernel parsed(".param .u64 a, .param .u64 b", kIndexed);
  const Grid grid = {.blocks = {2, 1, 1}, .threads = {32, 1, 1}};
  EXPECT_EQ(Text(TouchesOf(Analyse(parsed.kernel()), grid, Parameters({kA + 0xF80, kB}), kMemory)),
            "10f80-11000:r 20008-20108:w");
}

TEST(LaunchRangesTest, AnAddressInNoAllocationIsUnknown) {
  const ParsedKernel parsed(".param .u64 a, .param .u64 b", kIndexed);
  EXPECT_EQ(Text(TouchesOf(Analyse(parsed.kernel()), {}, Parameters({kA, 64}), kMemory)),
            "the address in line 13 lies in no allocation when the kernel is launched");
}

TEST(LaunchRangesTest, AnIndexFromMemoryTouchesTheWholeAllocation) {
  const ParsedKernel parsed(".param .u64 a, .param .u64 b", R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.global.u32 %r1, [%rd1+4];
    mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], 1;)");
  EXPECT_EQ(Text(TouchesOf(Analyse(parsed.kernel()), {}, Parameters({kA, kB + 8}), kMemory)),
            "10004-10008:r 20000-21000:w");
}

TEST(LaunchRangesTest, ADifferenceOfAddressesReachesTheOther) {
  const ParsedKernel parsed(".param .u64 a, .param .u64 b", R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; sub.s64 %rd3, %rd2, %rd1;
    add.s64 %rd4, %rd1, %rd3; st.global.u32 [%rd4], 1;)");
  EXPECT_EQ(Text(TouchesOf(Analyse(parsed.kernel()), {}, Parameters({kA, kB}), kMemory)),
            "20000-20004:w");
}

// What 64 threads touch that compare their number with `n`. In the body, %r4 is the number, %r5 is
// n, and %rd4 and %rd5 are the thread's places in a and b.
std::string Bounded(const std::string& body, uint64_t n, Bounds bounds = Bounds::kUsed) {
  const ParsedKernel parsed(".param .u64 a, .param .u64 b, .param .u64 n", R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r5, [n];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3; mul.wide.s32 %rd3, %r4, 4;
    add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;)" + body);
  const Grid grid = {.blocks = {2, 1, 1}, .threads = {32, 1, 1}};
  return Text(TouchesOf(Analyse(parsed.kernel()), grid, Parameters({kA, kB, n}), kMemory, bounds));
}

TEST(LaunchRangesTest, ThreadsBeyondABoundTouchNothing) {
  const std::string skips = R"(
    setp.ge.s32 %p1, %r4, %r5; @%p1 bra END;
    ld.global.u32 %r6, [%rd4]; st.global.u32 [%rd5], %r6;
    END:)";
  EXPECT_EQ(Bounded(skips, 40), "10000-100a0:r 20000-200a0:w");
  EXPECT_EQ(Bounded(skips, 40, Bounds::kIgnored), "10000-10100:r 20000-20100:w");
  EXPECT_EQ(Bounded(skips, 100), "10000-10100:r 20000-20100:w");
  EXPECT_EQ(Bounded(skips, 0), "");
  EXPECT_EQ(Bounded("setp.lt.s32 %p1, %r4, %r5; @%p1 st.global.u32 [%rd4], 1;", 40),
            "10000-100a0:w");
  EXPECT_EQ(Bounded("setp.ge.s32 %p1, %r4, %r5; @%p1 ret; st.global.u32 [%rd4], 1;", 40),
            "10000-100a0:w");
  EXPECT_EQ(Bounded("setp.ge.s32 %p1, %r4, %r5; @!%p1 ret; st.global.u32 [%rd4], 1;", 40),
            "100a0-10100:w");
}

TEST(LaunchRangesTest, BothSidesOfABranchAreBounded) {
  EXPECT_EQ(Bounded(R"(
    setp.lt.s32 %p1, %r4, %r5; @%p1 bra BELOW;
    st.global.u32 [%rd4], 1; bra.uni END;
    BELOW: st.global.u32 [%rd5], 1;
    END: st.global.u32 [%rd5+1024], 1;)",
                    40),
            "100a0-10100:w 20000-200a0:w 20400-20500:w");
}

TEST(LaunchRangesTest, OneThreadAlone) {
  EXPECT_EQ(Bounded("setp.eq.s32 %p1, %r4, %r5; @%p1 st.global.u32 [%rd4], 1;", 3),
            "1000c-10010:w");
  EXPECT_EQ(Bounded("setp.ne.s32 %p1, %r4, %r5; @%p1 bra END; st.global.u32 [%rd4], 1; END:", 3),
            "1000c-10010:w");
  EXPECT_EQ(Bounded("setp.ne.s32 %p1, %r4, %r5; @%p1 st.global.u32 [%rd4], 1;", 3),
            "10000-10100:w");
}

TEST(LaunchRangesTest, OfConditionsOneMayBeUnknown) {
  const std::string both = R"(
    ld.global.u32 %r6, [%rd5]; setp.ne.u32 %p1, %r6, 0; setp.lt.s32 %p2, %r4, %r5;)";
  EXPECT_EQ(Bounded(both + "and.pred %p3, %p1, %p2; @%p3 st.global.u32 [%rd4], 1;", 40),
            "10000-100a0:w 20000-20100:r");
  EXPECT_EQ(Bounded(both + "or.pred %p3, %p1, %p2; @%p3 st.global.u32 [%rd4], 1;", 40),
            "10000-10100:w 20000-20100:r");
}

// Where two ways lead to an access, only what holds on both bounds it.
TEST(LaunchRangesTest, ABlockWithTwoWaysToIt) {
  EXPECT_EQ(Bounded(R"(
    setp.lt.s32 %p1, %r4, 8; @%p1 bra THERE;
    setp.lt.s32 %p2, %r4, 48; @!%p2 bra END;
    THERE: st.global.u32 [%rd4], 1;
    END:)",
                    0),
            "10000-10100:w");
  EXPECT_EQ(Bounded(R"(
    setp.ge.s32 %p1, %r4, %r5; @%p1 bra END;
    setp.lt.s32 %p2, %r4, 8; @%p2 bra THERE;
    st.global.u32 [%rd5], 1;
    THERE: st.global.u32 [%rd4], 1;
    END:)",
                    40),
            "10000-100a0:w 20020-200a0:w");
}

TEST(LaunchRangesTest, ALoopWithinABound) {
  EXPECT_EQ(Bounded(R"(
    setp.ge.s32 %p1, %r4, %r5; @%p1 bra END; mov.u32 %r7, 0;
    AGAIN: ld.global.u32 %r6, [%rd4]; st.global.u32 [%rd5], %r6;
    add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 5; @%p2 bra AGAIN;
    END:)",
                    40),
            "10000-100a0:r 20000-200a0:w");
}

}  // namespace
}  // namespace replay
