#include "replay/kernel_access.h"

#include <gtest/gtest.h>

#include "tests/replay/parsed_kernel.h"

namespace replay {
namespace {

using testing::ParsedKernel;

KernelAccess Of(const std::string& parameters, const std::string& body,
                const std::string& before = "") {
  return Analyse(ParsedKernel(parameters, body, before).kernel());
}

// "p0:rw p8:u var0:r", p by the parameter's offset.
std::string Uses(const KernelAccess& access) {
  if (!access.unknown.empty()) return access.unknown;
  std::string text;
  for (size_t k = 0; k < access.origins.size(); ++k) {
    uint8_t use = 0;
    for (const Access& each : access.accesses) {
      for (OriginSet choice : each.address.alternatives()) {
        if ((choice >> k & 1) != 0) use |= each.use;
      }
    }
    if (use == 0) continue;
    const Origin& origin = access.origins[k];
    text += (text.empty() ? "" : " ");
    text += (origin.kind == Origin::Kind::kParameter ? "p" : "var") + std::to_string(origin.index);
    text += ":";
    if (use & kReads) text += "r";
    if (use & kWrites) text += "w";
    if (use & kUpdates) text += "u";
  }
  return text;
}

TEST(KernelAccessTest, AnIndexedLoadAndStore) {
  EXPECT_EQ(Uses(Of(".param .u64 a, .param .u64 b, .param .u32 n", R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n];
    cvta.to.global.u64 %rd3, %rd1; cvta.to.global.u64 %rd4, %rd2;
    mov.u32 %r2, %tid.x; mul.wide.u32 %rd5, %r2, 4;
    add.s64 %rd6, %rd3, %rd5; add.s64 %rd7, %rd4, %rd5;
    ld.global.f32 %f1, [%rd6]; st.global.f32 [%rd7+16], %f1;)")),
            "p0:r p8:w");
}

TEST(KernelAccessTest, AnAtomicUpdates) {
  EXPECT_EQ(Uses(Of(".param .u64 a, .param .u64 b", R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
    red.global.add.u32 [%rd1], 1; atom.add.u32 %r1, [%rd2], 1;)")),
            "p0:u p8:u");
}

TEST(KernelAccessTest, AChoiceIsBoth) {
  EXPECT_EQ(Uses(Of(".param .u64 a, .param .u64 b, .param .u64 c", R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];
    setp.eq.u64 %p1, %rd3, 0; selp.b64 %rd4, %rd1, %rd2, %p1; st.global.u32 [%rd4], 1;)")),
            "p0:w p8:w");
}

TEST(KernelAccessTest, ALoopThatMovesItsAddress) {
  EXPECT_EQ(Uses(Of(".param .u64 a, .param .u64 step", R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [step]; mov.u32 %r1, 0;
  L: st.global.u32 [%rd1], %r1; add.s64 %rd1, %rd1, %rd2; add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 9; @%p1 bra L;)")),
            "p0:w");
}

TEST(KernelAccessTest, AnIndexFromMemoryAndAnAddressFromMemoryDiffer) {
  EXPECT_EQ(Uses(Of(".param .u64 a, .param .u64 index", R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [index];
    ld.global.u64 %rd3, [%rd2]; shl.b64 %rd4, %rd3, 2; add.s64 %rd5, %rd1, %rd4;
    st.global.u32 [%rd5], 1;)")),
            "p0:w p8:r");
  EXPECT_EQ(Uses(Of(".param .u64 a", R"(
    ld.param.u64 %rd1, [a]; ld.global.u64 %rd2, [%rd1]; st.global.u32 [%rd2+8], 1;)")),
            "the address in line 9 was read from memory");
}

TEST(KernelAccessTest, ADistanceToAnAddressFromMemoryIsUnknown) {
  EXPECT_EQ(Uses(Of(".param .u64 a", R"(
    ld.param.u64 %rd1, [a]; ld.global.u64 %rd2, [%rd1]; sub.s64 %rd3, %rd2, %rd1;
    add.s64 %rd4, %rd1, %rd3; st.global.u32 [%rd4], 1;)")),
            "the address in line 10 was read from memory");
}

TEST(KernelAccessTest, AnAddressOfNoOriginIsUnknown) {
  EXPECT_EQ(Uses(Of("", "mov.u64 %rd1, 4096; st.global.u32 [%rd1], 1;")),
            "the address in line 8 comes from no parameter or variable");
  EXPECT_EQ(Uses(Of(".param .u32 low, .param .u32 high", R"(
    ld.param.u32 %r1, [low]; ld.param.u32 %r2, [high]; mov.b64 %rd1, {%r1, %r2};
    st.global.u32 [%rd1], 1;)")),
            "the address in line 10 comes from no parameter or variable");
}

TEST(KernelAccessTest, ThroughLocalAndSharedMemory) {
  const std::string kept = R"(
    ld.param.u64 %rd1, [a]; st.SPACE.u64 [slot], %rd1; ld.SPACE.u64 %rd2, [slot];
    st.global.u32 [%rd2], 1;)";
  for (const std::string space : {"local", "shared"}) {
    std::string body = kept;
    for (size_t at; (at = body.find("SPACE")) != std::string::npos;) body.replace(at, 5, space);
    EXPECT_EQ(Uses(Of(".param .u64 a", "." + space + " .align 8 .b8 slot[8];" + body)), "p0:w");
  }
}

TEST(KernelAccessTest, ThroughTheAddressOfALocalVariable) {
  EXPECT_EQ(Uses(Of(".param .u64 a", R"(
    .local .align 8 .b8 slot[16];
    mov.u64 %rd1, slot; cvta.local.u64 %rd2, %rd1; ld.param.u64 %rd3, [a];
    st.u64 [%rd2+8], %rd3; ld.u64 %rd4, [%rd2+8]; st.global.u32 [%rd4], 1;)")),
            "p0:w");
}

TEST(KernelAccessTest, ThroughAFunctionAndBack) {
  EXPECT_EQ(Uses(Of(".param .u64 a, .param .u64 b", R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
    { .param .b64 in; .param .b64 out; st.param.b64 [in], %rd1; call (out), next, (in);
      ld.param.b64 %rd3, [out]; }
    st.global.u32 [%rd3], 1; ld.global.u32 %r1, [%rd2];)",
                    R"(
.func (.param .b64 result) next(.param .b64 at) {
  .reg .b64 %x<4>; .reg .b32 %y<2>;
  ld.param.b64 %x1, [at]; ld.global.u32 %y1, [%x1];
  add.s64 %x2, %x1, 4; st.param.b64 [result], %x2; ret;
})")),
            "p0:rw p8:r");
}

TEST(KernelAccessTest, AStructureOfAddressesByItsAddress) {
  EXPECT_EQ(Uses(Of(".param .align 8 .b8 s[24]", R"(
    mov.b64 %rd1, s; ld.param.u64 %rd2, [%rd1+8]; ld.param.u64 %rd3, [s+16];
    ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd3], %r1;)")),
            "p8:r p16:w");
}

TEST(KernelAccessTest, Variables) {
  EXPECT_EQ(Uses(Of(".param .u64 a", R"(
    mov.u64 %rd1, counter; red.global.add.u32 [%rd1], 1; ld.const.f32 %f1, [factor];
    ld.param.u64 %rd2, [a]; st.global.f32 [%rd2], %f1;)",
                    ".global .align 4 .u32 counter;\n.const .align 4 .f32 factor = 0f3F800000;")),
            "var0:u var1:r p0:w");
}

TEST(KernelAccessTest, EscapesAreTold) {
  const KernelAccess access = Of(".param .u64 a, .param .u64 b", R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; st.global.u64 [%rd1], %rd2;)");
  ASSERT_EQ(access.origins.size(), 2u);
  EXPECT_EQ(access.origins[1].index, 8u);
  EXPECT_EQ(access.escapes, 2u);
}

TEST(KernelAccessTest, ManyAccessesAreOneWithoutARange) {
  std::string body = "ld.param.u64 %rd1, [a];";
  for (int k = 0; k < 1000; ++k) {
    body += "\n ld.global.u32 %r1, [%rd1+" + std::to_string(4 * k) + "];";
  }
  const KernelAccess access = Of(".param .u64 a", body);
  ASSERT_EQ(access.accesses.size(), 1u);
  EXPECT_EQ(access.accesses[0].range, kNoTerm);
}

// Each value is twice the value before: written out, the last expression has 2^28 terms.
TEST(KernelAccessTest, AnExpressionThatDoublesIsShownInShort) {
  std::string body = "mov.u32 %r1, %tid.x; cvt.u64.u32 %rd1, %r1;";
  for (int k = 1; k < 29; ++k) {
    const std::string before = "%rd" + std::to_string(k);
    body += "add.s64 %rd" + std::to_string(k + 1) + ", " + before + ", " + before + ";";
  }
  const KernelAccess access = Of(".param .u64 a", body + R"(
    ld.param.u64 %rd30, [a]; add.s64 %rd31, %rd30, %rd29; st.global.u32 [%rd31], 1;)");
  ASSERT_EQ(access.accesses.size(), 1u);
  const std::string text = access.expressions.Texts()[access.accesses[0].range];
  EXPECT_EQ(text.substr(0, 5), "p0 + ");
  EXPECT_LT(text.size(), 250u);
}

TEST(KernelAccessTest, WhatCannotBeFollowedSaysWhy) {
  EXPECT_EQ(Uses(Of(".param .u64 t", R"(
    ld.param.u64 %rd1, [t]; mov.u32 %r1, 0;
    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];)")),
            "a texture or surface in line 10");
  EXPECT_EQ(Uses(Of(".param .u64 f", R"(
    ld.param.u64 %rd1, [f]; { call %rd1, (), kind; })",
                    ".func g() { ret; }\n")),
            "a call through a pointer in line 10");
}

}  // namespace
}  // namespace replay
