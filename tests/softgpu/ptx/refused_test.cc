// What the table refuses is named with its line and reason, and docs/ptx.md says the same.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "softgpu/ptx/instruction_table.h"
#include "softgpu/ptx/instruction_text.h"
#include "softgpu/ptx/module.h"

namespace softgpu::ptx {
namespace {

std::string LogOf(const std::string& statement) {
  std::string log;
  const std::string kernel =
      ".version 9.0\n.target sm_100\n.address_size 64\n"
      ".visible .entry k() { .reg .b32 %r0; .reg .b64 %l0;\n" +
      statement + ";\nret;\n}\n";
  const auto module = PtxModule::Parse(kernel, &log);
  EXPECT_EQ(module, nullptr) << statement;
  return log;
}

TEST(Refused, EachInstructionNamesItsReason) {
  for (const Refusal& refusal : Refusals()) {
    if (!refusal.words.empty()) continue;
    const std::string name(refusal.name);
    const std::string want =
        "line 5; fatal   : Instruction '" + name + ".x' is refused: " + std::string(refusal.reason);
    EXPECT_NE(LogOf(name + ".x").find(want), std::string::npos) << LogOf(name + ".x");
  }
}

TEST(Refused, FormsOfSupportedInstructionsToo) {
  EXPECT_NE(LogOf("cvt.rs.f16x2.f32 %r0, %r1, %r2, %r3").find("'.rs' of instruction"),
            std::string::npos);
  EXPECT_NE(
      LogOf("stmatrix.sync.aligned.m16n8.x1.b8 [%l0], {%r0}").find("is refused: needs sm_100a"),
      std::string::npos);
  EXPECT_NE(LogOf("add.sideways.f32 %r0").find("Unknown modifier '.sideways'"), std::string::npos);
  EXPECT_NE(LogOf("frobnicate.f32 %r0").find("Not a name of any known instruction"),
            std::string::npos);
}

TEST(Refused, LaunchesFromTheDeviceNameTheKernel) {
  for (const std::string name :
       {"__cudaCDP2LaunchDeviceV2", "cudaLaunchDevice", "cudaGetParameterBufferV2"}) {
    std::string log;
    const std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func " +
                             name +
                             "(.param .b64 a);\n"
                             ".visible .entry _Z6parentPi() { .param .b64 a;\n"
                             "st.param.b64 [a], 0;\ncall " +
                             name + ", (a);\nret;\n}\n";
    EXPECT_EQ(PtxModule::Parse(text, &log), nullptr);
    EXPECT_NE(log.find("kernel parent(int*) launches kernels from the device, which is not "
                       "supported"),
              std::string::npos)
        << log;
  }
}

TEST(Refused, TypesThatMatricesDoNotHave) {
  const std::string fragments = " {%r0}, {%r0}, {%r0}, {%r0}";
  for (const std::string types :
       {"f32.bf16.tf32.f32", "f32.bf16.bf16", "s32.s8.u4.s32", "f16.f16.f16.f16"}) {
    LogOf("wmma.mma.sync.aligned.row.col.m16n16k16." + types + fragments);
    LogOf("mma.sync.aligned.m16n8k16.row.col." + types + fragments);
  }
  LogOf("wmma.load.a.sync.aligned.row.m8n8k4.f16 {%r0}, [%l0]");
}

TEST(Refused, InstructionsWithoutTheirOperands) {
  for (const Row& row : Rows()) {
    const bool takes_none = row.signature == "=" || row.op == Op::kCall || row.op == Op::kBarrier;
    if (takes_none || row.op == Op::kCpAsync || row.op == Op::kCpBulk) continue;
    LogOf(std::string(row.name) +
          (row.types.empty()
               ? ""
               : "." + std::string(row.types.substr(0, row.types.find_first_of(" /")))));
  }
}

TEST(Refused, PageIsCurrent) {
  std::ifstream file(LANEWAY_SOURCE_DIR "/docs/ptx.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), PtxMarkdown()) << "make it anew: build/bin/ptx_table > docs/ptx.md";
}

}  // namespace
}  // namespace softgpu::ptx
