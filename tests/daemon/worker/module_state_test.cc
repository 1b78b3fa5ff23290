#include "daemon/worker/module_state.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace worker {
namespace {

ModuleState StateOf(std::string_view text) {
  return StateOfModule({reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

constexpr char kKernel[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 p) {\n ld.global.u32 %r1, [%rd1];\n st.global.u32 [%rd1], %r1;\n"
    " ret;\n}\n";

TEST(ModuleStateTest, AKernelAloneHasNone) { EXPECT_EQ(StateOf(kKernel), ModuleState::kNone); }

TEST(ModuleStateTest, VariablesInGlobalMemoryCount) {
  for (const char* const variable :
       {".visible .global .align 4 .u32 counter;\n", ".global .align 4 .f32 table[8] = {0, 1};\n",
        "\t.global .u64 a, b;\n", ".extern .global .align 4 .b8 other[];\n"}) {
    EXPECT_EQ(StateOf(std::string(variable) + kKernel), ModuleState::kHeld) << variable;
  }
}

TEST(ModuleStateTest, LiteralsAndConstantsDoNot) {
  for (const char* const variable :
       {".global .align 1 .b8 $str[4] = {97, 0};\n", ".global .align 1 .b8 _$_str[4] = {97};\n",
        ".global .align 1 .b8 __unnamed_1[4] = {97};\n", ".const .align 4 .f32 scale[2];\n"}) {
    EXPECT_EQ(StateOf(std::string(variable) + kKernel), ModuleState::kNone) << variable;
  }
}

TEST(ModuleStateTest, HeapAndCallsThroughPointersCount) {
  EXPECT_EQ(StateOf(".extern .func (.param .b64 r) malloc (.param .b64 n);\n"), ModuleState::kHeld);
  EXPECT_EQ(StateOf("p: .callprototype (.param .b32 _) _ (.param .b32 _);\n"), ModuleState::kHeld);
}

TEST(ModuleStateTest, WhatPrintsIsKnownByItsCall) {
  const std::string print =
      ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n";
  EXPECT_EQ(StateOf(print + kKernel), ModuleState::kPrints);
  EXPECT_EQ(StateOf(".global .u32 counter;\n" + print + kKernel), ModuleState::kHeld);
}

TEST(ModuleStateTest, AnInstructionAboutGlobalMemoryIsNoVariable) {
  EXPECT_EQ(StateOf(" isspacep.global %p1, %rd1;\n"), ModuleState::kNone);
}

// One of its entries is loaded, nobody knows which.
TEST(ModuleStateTest, OfAFatBinaryTheWorstEntryCounts) {
  const std::string held = std::string(".global .u32 counter;\n") + kKernel;
  for (const bool first : {true, false}) {
    std::string entries;
    for (const std::string& ptx : {first ? held : kKernel, first ? kKernel : held}) {
      std::string header(64, '\0');
      header[0] = 1;   // PTX
      header[4] = 64;  // bytes of this header
      const uint64_t bytes = ptx.size();
      header.replace(8, sizeof bytes, reinterpret_cast<const char*>(&bytes), sizeof bytes);
      entries += header + ptx;
    }
    std::string container("\x50\xed\x55\xba\x01\x00\x10\x00", 8);
    const uint64_t bytes = entries.size();
    container.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    EXPECT_EQ(StateOf(container + entries), ModuleState::kHeld) << first;
  }
}

TEST(ModuleStateTest, DamageIsUnknownOrHarmless) {
  const std::string elf = std::string("\x7f") + "ELF" + std::string(60, '\0');
  EXPECT_EQ(StateOf(elf), ModuleState::kUnknown);
  std::string container("\x50\xed\x55\xba\x01\x00\x10\x00", 8);
  container += std::string("\x80\0\0\0\0\0\0\0", 8) + std::string(128, '\xff');
  EXPECT_EQ(StateOf(container), ModuleState::kUnknown);
  EXPECT_EQ(StateOf(""), ModuleState::kNone);
}

}  // namespace
}  // namespace worker
