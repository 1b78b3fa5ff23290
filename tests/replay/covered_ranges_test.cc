// Ranges that launches certainly overwrite.
#include "replay/covered_ranges.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "replay/launch_ranges.h"
#include "tests/replay/parsed_kernel.h"

namespace replay {
namespace {

using testing::ParsedKernel;

constexpr uint64_t kTo = 0x10000, kFrom = 0x20000, kAllocationBytes = 0x4000;

// i is in %r4, the address of to[i] in %rd5.
const char* const kIndex = R"(
    ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from]; ld.param.u32 %r9, [n];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    cvta.to.global.u64 %rd3, %rd1; mul.wide.s32 %rd4, %r4, 4; add.s64 %rd5, %rd3, %rd4;)";

class CoveredRangesTest : public ::testing::Test {
 protected:
  static LaunchTouches TouchesWith(const std::string& body, uint32_t n, const Grid& grid) {
    const ParsedKernel parsed(".param .u64 to, .param .u64 from, .param .u32 n", kIndex + body);
    std::vector<std::byte> parameters(20);
    std::memcpy(parameters.data(), &kTo, 8);
    std::memcpy(parameters.data() + 8, &kFrom, 8);
    std::memcpy(parameters.data() + 16, &n, 4);
    const Memory memory = {.allocation = [](uint64_t address) -> std::optional<Range> {
                             return Range{address & ~0xffffull, kAllocationBytes};
                           },
                           .variable = [](uint32_t) { return std::nullopt; },
                           .movable = [](uint64_t) { return true; }};
    return TouchesOf(Analyse(parsed.kernel()), grid, parameters, memory);
  }
  // "begin+bytes" of each range, from the parameter on.
  static std::string Covers(const std::string& body, uint32_t n = 100, const Grid& grid = kGrid) {
    std::string text;
    for (const Range& range : TouchesWith(body, n, grid).covers)
      text += (text.empty() ? "" : " ") + std::to_string(range.begin - kTo) + "+" +
              std::to_string(range.bytes);
    return text;
  }
  static constexpr Grid kGrid = {.blocks = {4, 1, 1}, .threads = {32, 1, 1}};
};

TEST_F(CoveredRangesTest, AllThreadsStoreSideBySide) {
  EXPECT_EQ(Covers("st.global.u32 [%rd5], %r4;"), "0+512");
  EXPECT_EQ(Covers("st.u32 [%rd5+8], %r4;"), "8+512");
}

TEST_F(CoveredRangesTest, VectorsCountTheirWidth) {
  const std::string wide = "mul.wide.s32 %rd6, %r4, 16; add.s64 %rd7, %rd1, %rd6;";
  EXPECT_EQ(Covers(wide + "st.global.v4.u32 [%rd7], {%r4, %r4, %r4, %r4};"), "0+2048");
  EXPECT_EQ(Covers(wide + "st.global.v2.u32 [%rd7], {%r4, %r4};"),
            Covers(wide + "st.global.u64 [%rd7], %rd7;"));
  EXPECT_EQ(Covers(wide + R"(
      st.global.v2.u32 [%rd7+8], {%r4, %r4}; st.global.u32 [%rd7+4], %r4;
      st.global.u32 [%rd7], %r4;)"),
            "0+2048");
}

TEST_F(CoveredRangesTest, GapsStay) {
  const std::string wide = "mul.wide.s32 %rd6, %r4, 8; add.s64 %rd7, %rd1, %rd6;";
  const Grid three = {.blocks = {1, 1, 1}, .threads = {3, 1, 1}};
  EXPECT_EQ(Covers(wide + "st.global.u32 [%rd7], %r4;", 100, three), "0+4 8+4 16+4");
  EXPECT_EQ(Covers("setp.lt.s32 %p1, %r3, 7; @%p1 st.global.u32 [%rd5], %r4;"),
            "0+28 128+28 256+28 384+28");
}

TEST_F(CoveredRangesTest, ABoundCutsTheIndex) {
  for (const char* const body :
       {"setp.ge.s32 %p1, %r4, %r9; @%p1 bra DONE; st.global.u32 [%rd5], %r4; DONE:",
        "setp.lt.u32 %p1, %r4, %r9; @!%p1 bra DONE; st.global.u32 [%rd5], %r4; DONE:",
        "setp.gt.u32 %p1, %r9, %r4; @%p1 st.global.u32 [%rd5], %r4;",
        "setp.lt.s32 %p1, %r4, %r9; not.pred %p2, %p1; @!%p2 st.global.u32 [%rd5], %r4;"}) {
    EXPECT_EQ(Covers(body, 100), "0+400") << body;
    EXPECT_EQ(Covers(body, 1000), "0+512") << body;
    EXPECT_EQ(Covers(body, 1), "0+4") << body;
    EXPECT_EQ(Covers(body, 0), "") << body;
  }
  EXPECT_EQ(Covers("setp.le.s32 %p1, %r4, %r9; @%p1 st.global.u32 [%rd5], %r4;", 100), "0+404");
  EXPECT_EQ(Covers(R"(setp.ge.s32 %p1, %r4, 10; setp.lt.s32 %p2, %r4, %r9;
                      and.pred %p3, %p1, %p2; @%p3 st.global.u32 [%rd5], %r4;)",
                   100),
            "40+360");
  EXPECT_EQ(Covers(R"(setp.lt.s32 %p1, %r4, 10; setp.ge.s32 %p2, %r4, %r9;
                      or.pred %p3, %p1, %p2; @%p3 bra DONE; st.global.u32 [%rd5], %r4; DONE:)",
                   100),
            "40+360");
}

TEST_F(CoveredRangesTest, ABoundOfSomethingElseIsNotUnderstood) {
  for (const char* const body :
       {"setp.ne.s32 %p1, %r4, %r9; @%p1 st.global.u32 [%rd5], %r4;",  // a gap
        "ld.global.u32 %r5, [%rd2]; setp.lt.s32 %p1, %r4, %r5; @%p1 st.global.u32 [%rd5], %r4;",
        R"(setp.lt.s32 %p1, %r4, %r9; setp.lt.s32 %p2, %r3, 9;
           or.pred %p3, %p1, %p2; @%p3 st.global.u32 [%rd5], %r4;)"})
    EXPECT_EQ(Covers(body), "") << body;
}

// Where a thread may return early, or a block may be left out, the store may not happen.
TEST_F(CoveredRangesTest, WhatMayNotHappenIsNotCovered) {
  EXPECT_EQ(Covers("setp.ge.s32 %p1, %r4, %r9; @%p1 ret; st.global.u32 [%rd5], %r4;"), "");
  EXPECT_EQ(Covers(R"(ld.global.u32 %r5, [%rd2]; setp.lt.s32 %p1, %r5, 1; @%p1 bra DONE;
                      st.global.u32 [%rd5], %r4; DONE:)"),
            "");
  EXPECT_EQ(Covers("st.volatile.global.u32 [%rd5], %r4;"), "");
  EXPECT_EQ(Covers("atom.global.exch.b32 %r5, [%rd5], %r4;"), "");
}

TEST_F(CoveredRangesTest, BehindALoopAllThreadsGoOn) {
  EXPECT_EQ(Covers(R"(mov.u32 %r5, 0;
      AGAIN: add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, %r9; @%p1 bra AGAIN;
      st.global.u32 [%rd5], %r5;)"),
            "0+512");
}

TEST_F(CoveredRangesTest, RowsAndColumnsHaveBoundsOfTheirOwn) {
  const std::string plane = R"(
      mov.u32 %r5, %tid.y; mov.u32 %r6, %ctaid.y; mov.u32 %r7, %ntid.y;
      mad.lo.s32 %r8, %r6, %r7, %r5; mad.lo.s32 %r10, %r8, %r9, %r4;
      mul.wide.s32 %rd6, %r10, 4; add.s64 %rd7, %rd1, %rd6;
      setp.lt.s32 %p1, %r4, %r9; setp.lt.s32 %p2, %r8, 5; and.pred %p3, %p1, %p2;
      @!%p3 bra DONE; st.global.u32 [%rd7], %r4; DONE:)";
  const Grid grid = {.blocks = {2, 2, 1}, .threads = {8, 4, 1}};
  EXPECT_EQ(Covers(plane, 10, grid), "0+200");
  EXPECT_EQ(Covers(plane, 16, grid), "0+320");
}

TEST_F(CoveredRangesTest, AnIndexThatWrapsAroundIsNotUnderstood) {
  EXPECT_EQ(Covers("mad.lo.s32 %r5, %r4, 0x2000000, 0; mul.wide.s32 %rd6, %r5, 4;"
                   "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r4;"),
            "");
  EXPECT_EQ(Covers("sub.s32 %r5, 127, %r4; mul.wide.s32 %rd6, %r5, 4;"
                   "add.s64 %rd7, %rd1, %rd6; st.global.u32 [%rd7], %r4;"),
            "0+512");
}

TEST_F(CoveredRangesTest, WhatTheLaunchReadsIsNotCovered) {
  EXPECT_EQ(Covers("ld.global.u32 %r5, [%rd5]; st.global.u32 [%rd5], %r5;"), "");
  EXPECT_EQ(Covers("ld.global.u32 %r5, [%rd1+64]; st.global.u32 [%rd5], %r5;"), "0+64 68+444");
}

TEST_F(CoveredRangesTest, AParameterThatIsOnlyAnAddressMayMove) {
  const auto movable = [](const std::string& body) {
    std::string text;
    for (const ParameterTouch& each : TouchesWith(body, 100, kGrid).by_parameter)
      text += each.parameter.has_value() ? std::to_string(*each.parameter) + " " : "- ";
    return text;
  };
  const std::string copies = "ld.global.u32 %r5, [%rd2]; st.global.u32 [%rd5], %r5;";
  EXPECT_EQ(movable(copies), "8 0 ");
  EXPECT_EQ(movable("setp.eq.u64 %p1, %rd1, 0;" + copies), "8 - ") << "compares the address";
  EXPECT_EQ(movable("sub.s64 %rd6, %rd1, %rd2;" + copies), "- 0 ") << "a distance";
  EXPECT_EQ(movable("add.s64 %rd6, %rd1, %rd1;" + copies), "8 - ") << "twice the address";
  EXPECT_EQ(movable("and.b64 %rd6, %rd1, 15;" + copies), "8 - ") << "looks at its bits";
  EXPECT_EQ(movable("st.global.u64 [%rd2], %rd1;" + copies), "8 8 - ") << "keeps the address";
  EXPECT_EQ(movable("ld.param.u32 %r6, [to+4];" + copies), "8 - ") << "loads half of it";
  EXPECT_EQ(movable("selp.b64 %rd6, %rd1, %rd2, %p1; st.global.u32 [%rd6], 1;" + copies),
            "- - - - ");
}

}  // namespace
}  // namespace replay
