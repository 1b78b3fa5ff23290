// The parser on good, bad and hostile text. Semantics are tested in tests/softgpu/exec.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "softgpu/ptx/instruction_table.h"
#include "softgpu/ptx/ir.h"
#include "softgpu/ptx/module.h"

namespace softgpu {
namespace {

const char kHeader[] = ".version 8.5\n.target sm_90, debug\n.address_size 64\n";

std::shared_ptr<const PtxModule> Parse(const std::string& text, std::string* log) {
  return PtxModule::Parse(text, log);
}

// The log of a text that must not parse.
std::string LogOf(const std::string& text) {
  std::string log;
  EXPECT_EQ(Parse(text, &log), nullptr) << text;
  return log;
}

std::string Body(const std::string& statements) {
  return std::string(kHeader) +
         ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .pred %p<2>;\n" + statements +
         "\nret;\n}\n";
}

// nvcc writes packed structures as bytes: an address in eight of them.
TEST(Parse, AddressesByteByByte) {
  std::string bytes = "1";
  for (int k = 0; k < 8; ++k) bytes += ", 0xFF" + std::string(2 * k, '0') + "(generic(x)+4)";
  const std::string x = std::string(kHeader) + ".global .u32 x[2];\n.global .align 1 .u8 s[10] = {";
  std::string log;
  const auto module = Parse(x + bytes + ", 7};", &log);
  ASSERT_NE(module, nullptr) << log;
  const Variable& s = module->variables()[1];
  ASSERT_EQ(s.relocations.size(), 1u);
  EXPECT_EQ(s.relocations[0].offset, 1u);
  EXPECT_EQ(s.relocations[0].addend, 4);
  EXPECT_EQ(s.init[9], std::byte{7});
  EXPECT_EQ(Parse(x + "0xFF(x), 0xFF00(x)};", &log), nullptr);
  EXPECT_NE(log.find("Bytes of an address are missing"), std::string::npos);
  EXPECT_EQ(Parse(x + "0xFF(x), 0xFF0000(x)};", &log), nullptr);
  EXPECT_NE(log.find("must pick its next byte"), std::string::npos);
}

// XLA's kernels that set the conditions of graphs are such text, and the vendor's parser takes it.
TEST(Parse, PrototypesMayLackTheirEnd) {
  std::string log;
  for (const std::string between : {"", " .noreturn", ";"}) {
    const auto module =
        Parse(std::string(kHeader) + ".extern .func cudaGraphSetConditional(.param " +
                  ".b64 h, .param .b32 v)" + between +
                  ".visible .entry k() { ret; }\n.func f(.param .b32 a)",
              &log);
    ASSERT_NE(module, nullptr) << log;
    EXPECT_EQ(module->kernels().size(), 1u);
  }
  EXPECT_EQ(Parse(std::string(kHeader) + ".entry k() .visible .entry e() { ret; }", &log), nullptr);
  EXPECT_NE(log.find("';' expected"), std::string::npos) << log;
}

TEST(Parse, ModuleScope) {
  std::string log;
  const auto module = Parse(std::string(kHeader) + R"(
    .visible .global .align 8 .u64 pointers[2] = {generic(table)+4, f};
    .global .align 4 .b8 table[12] = {1, 2, 0xff, -1};
    .const .f32 half = 0f3F000000;
    .visible .const .f64 matrix[2][2] = {{1.5, -2.0}, {0d3FF0000000000000}};
    .global .attribute(.managed) .s32 shared_with_host;
    .shared .align 16 .b8 box[100];
    .extern .shared .align 16 .b8 dynamic[];
    .func (.param .b32 r) f(.param .b32 a) { ret; }
    .visible .entry k(.param .u8 a, .param .align 16 .b8 s[20], .param .u64 .ptr .global .align 4 p)
    .maxntid 128, 2, 1 .minnctapersm 2
    { .reg .b32 %r<4>; mov.u32 %r1, box; mov.u32 %r2, dynamic; ret; }
    .entry fixed() .reqntid 32, 4 { ret; })",
                            &log);
  ASSERT_NE(module, nullptr) << log;
  EXPECT_EQ(log, "");
  EXPECT_EQ(module->ptx_version(), 85);
  EXPECT_EQ(module->target(), 90);
  const std::vector<Variable>& variables = module->variables();
  ASSERT_EQ(variables.size(), 5u);
  EXPECT_EQ(variables[0].bytes, 16u);
  EXPECT_TRUE(variables[0].exported);
  ASSERT_EQ(variables[0].relocations.size(), 1u);  // a function's address is a constant
  EXPECT_EQ(variables[0].relocations[0].variable, 1u);
  EXPECT_EQ(variables[0].relocations[0].addend, 4);
  EXPECT_EQ(variables[1].init,
            (std::vector<std::byte>{std::byte{1}, std::byte{2}, std::byte{255}, std::byte{255}}));
  EXPECT_EQ(variables[1].bytes, 12u);
  EXPECT_TRUE(variables[2].constant);
  double second;
  std::memcpy(&second, variables[3].init.data() + 8, 8);
  EXPECT_EQ(second, -2.0);
  EXPECT_TRUE(variables[4].managed);
  ASSERT_EQ(module->kernels().size(), 2u);
  const Kernel& k = *module->kernels()[0];
  EXPECT_EQ(k.param_bytes(), 48u);
  EXPECT_EQ(k.params()[1].offset, 16u);
  EXPECT_EQ(k.params()[2].offset, 40u);
  EXPECT_EQ(k.static_shared_bytes(), 100u);
  EXPECT_EQ(k.threads_max(), 256u);
  EXPECT_EQ(module->kernels()[1]->static_shared_bytes(), 0u);  // uses none of it
  EXPECT_EQ(module->kernels()[1]->required_block().y, 4u);
}

TEST(Parse, ErrorsNameTheLine) {
  EXPECT_EQ(LogOf(Body("frobnicate.u32 %r1, %r2;")),
            "ptxas application ptx input, line 8; fatal   : Not a name of any known instruction: "
            "'frobnicate.u32'\n");
  EXPECT_NE(
      LogOf(Body("add.f128 %r1, %r2, %r3;")).find("line 8; fatal   : Unknown modifier '.f128'"),
      std::string::npos);
  EXPECT_NE(LogOf(Body("\nadd.u32 %r1, %r2;")).find("line 9; fatal   : Arguments mismatch"),
            std::string::npos);
  EXPECT_NE(LogOf(Body("add.u64 %r1, %r2, %r3;")).find("Arguments mismatch for instruction 'add'"),
            std::string::npos);
  EXPECT_NE(LogOf(Body("bra NOWHERE;")).find("Unknown symbol 'NOWHERE'"), std::string::npos);
  EXPECT_NE(LogOf(Body("mov.u32 %r1, %q;")).find("Unknown symbol '%q'"), std::string::npos);
  EXPECT_NE(LogOf(Body("mov.u32 %r9, 1;")).find("Unknown symbol '%r9'"), std::string::npos);
  EXPECT_NE(LogOf(Body("@%r1 mov.u32 %r2, 1;")).find("no predicate"), std::string::npos);
  EXPECT_NE(LogOf(Body("call missing;")).find("Unresolved extern function 'missing'"),
            std::string::npos);
  EXPECT_NE(LogOf("no PTX at all").find("Missing .version"), std::string::npos);
  EXPECT_NE(LogOf("").find("Missing .version"), std::string::npos);
  EXPECT_NE(LogOf(Body("A: A: ret;")).find("Duplicate definition of label 'A'"), std::string::npos);
}

TEST(Parse, LimitsHold) {
  EXPECT_NE(LogOf(Body(std::string(1000, '{'))).find("nested too deeply"), std::string::npos);
  EXPECT_NE(LogOf(std::string(kHeader) + ".global .b8 x[99999999999999];").find("too large"),
            std::string::npos);
  EXPECT_NE(
      LogOf(std::string(kHeader) + ".global .b64 x[65536][65536][65536][65536];").find("too large"),
      std::string::npos);
  EXPECT_NE(LogOf(Body(".local .b8 x[1000000];")).find("local memory"), std::string::npos);
  EXPECT_NE(LogOf(Body(".shared .b8 x[300000];")).find("too large"), std::string::npos);
  std::string log;
  EXPECT_NE(Parse(Body(".reg .b32 %many<4000000000>; mov.u32 %many3999999999, 1;"), &log), nullptr)
      << log;
}

TEST(Parse, LabelsBelongToTheirScope) {
  std::string log;
  EXPECT_NE(Parse(Body("{ L: @%p1 bra L; bra OUT; }\n{ L: @%p1 bra L; }\nOUT:"), &log), nullptr)
      << log;
}

TEST(Parse, PostDominators) {
  std::string log;
  const auto module = Parse(Body("@%p0 bra ELSE;\nmov.u32 %r1, 1;\nbra END;\nELSE:\nmov.u32 %r1, "
                                 "2;\nEND:\nmov.u32 %r2, %r1;"),
                            &log);
  ASSERT_NE(module, nullptr) << log;
  const ptx::Function& f = static_cast<const ptx::KernelImpl&>(*module->kernels()[0]).function();
  ASSERT_EQ(f.blocks.size(), 4u);
  EXPECT_EQ(f.blocks[0].post_dominator, 3u);
  EXPECT_EQ(std::vector<bool>(f.reconverges.begin(), f.reconverges.end() - 1),
            (std::vector<bool>{false, false, false, false, true, false}));
}

// Damaged text never crashes the parser; it may still parse.
TEST(Parse, SurvivesDamage) {
  const std::string good = Body(
      ".local .align 4 .b8 depot[16];\n.param .b32 q;\nsetp.lt.and.s32 %p0|%p1, %r1, -5, !%p1;\n"
      "ld.global.v4.f32 {%r1, %r2, _, %r4}, [%r1+16];\nmov.b64 {%r1, %r2}, 0d3FF0000000000000;\n"
      "T: .branchtargets A, B;\nbrx.idx %r1, T;\nA: @!%p0 bra B;\nB: shfl.sync.idx.b32 %r1|%p0, "
      "%r2, 1, 31, -1;");
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (uint32_t edits = 1 + random() % 4; edits > 0 && !text.empty(); --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 9);
          break;
        case 1:
          text[at] = static_cast<char>(random());
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
        default:
          text.resize(at + 1);
          break;
      }
    }
    std::string log;
    EXPECT_TRUE(Parse(text, &log) != nullptr || !log.empty());
  }
}

TEST(Table, RowsAreWellFormed) {
  for (const ptx::Row& row : ptx::Rows()) {
    EXPECT_NE(row.signature.find('='), std::string_view::npos) << row.name;
    EXPECT_FALSE(row.summary.empty()) << row.name;
    EXPECT_EQ(row.op, ptx::Rows()[static_cast<size_t>(row.op)].op) << row.name;
  }
}

}  // namespace
}  // namespace softgpu
