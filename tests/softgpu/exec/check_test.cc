// The checked mode on small faulty kernels, and its silence on the same kernels mended.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

using Kind = Finding::Kind;

constexpr char kHeader[] = ".version 8.5\n.target sm_80\n.address_size 64\n";

class Checked : public ::testing::Test {
 protected:
  // Runs `body` (lines from 8 on) on one block; %r0 is the thread, %r1 its word in `box`, %l0 the
  // parameter.
  void Run(const std::string& body, uint32_t threads = 64) {
    machine.checked = true;
    machine.Load(std::string(kHeader) +
                 ".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %l<4>;\n"
                 ".reg .pred %p<3>; .shared .align 4 .b8 box[1024]; .local .align 8 .b8 own[16];\n"
                 "mov.u32 %r0, %tid.x; ld.param.u64 %l0, [p]; mov.u32 %r1, box;\n"
                 "mad.lo.u32 %r1, %r0, 4, %r1; mov.u32 %r2, 1;\n" +
                 body + "\nret; }\n");
    machine.findings.clear();
    const std::optional<Fault> fault = machine.Run("k", {1}, {threads}, address);
    EXPECT_FALSE(fault.has_value()) << fault->ToString();
  }
  void ExpectClean(const std::string& body) {
    Run(body);
    EXPECT_TRUE(machine.findings.empty()) << machine.findings[0].text;
  }
  void ExpectOne(Kind kind, int line, int other_line = 0) {
    ASSERT_EQ(machine.findings.size(), 1u);
    EXPECT_EQ(machine.findings[0].kind, kind) << machine.findings[0].text;
    // Which of two accesses is the later one is the scheduler's choice.
    const auto [least, most] =
        std::minmax(machine.findings[0].line, machine.findings[0].other_line);
    EXPECT_EQ(most, std::max(line, other_line)) << machine.findings[0].text;
    EXPECT_EQ(least, std::min(line, other_line)) << machine.findings[0].text;
  }
  Machine machine;
  uint64_t address = 0;
};

// Each thread writes its word and reads the one of another warp.
const std::string kWrite = "st.shared.u32 [%r1], %r0;\n";  // line 8
const std::string kRead = "xor.b32 %r3, %r1, 128; ld.shared.u32 %r4, [%r3];\n";

TEST_F(Checked, RaceBetweenWarps) {
  Run(kWrite + kRead);
  ASSERT_EQ(machine.findings.size(), 2u);  // the first warp also reads what nobody has written
  EXPECT_EQ(machine.findings[0].kind, Kind::kUninitialised);
  EXPECT_EQ(machine.findings[1].kind, Kind::kRace);
  const std::string& text = machine.findings[1].text;
  EXPECT_NE(text.find("race in shared memory at box+"), std::string::npos) << text;
  EXPECT_NE(text.find("thread (0,0,0) has read it at PTX line 9"), std::string::npos) << text;
  EXPECT_NE(text.find("thread (32,0,0) writes it at PTX line 8"), std::string::npos) << text;
  EXPECT_NE(text.find("no barrier orders the two"), std::string::npos) << text;
}

TEST_F(Checked, BarriersOrder) {
  ExpectClean(kWrite + "bar.sync 0;\n" + kRead + "bar.sync 0;\n" + kWrite);
  ExpectClean(kWrite + "bar.sync 3, 64;\n" + kRead);
  // Only the first warp waits for the second one's arrival.
  ExpectClean("setp.lt.u32 %p0, %r0, 32;\n@%p0 bra CONSUME;\n" + kWrite +
              "bar.arrive 1, 64; bra DONE;\nCONSUME: bar.sync 1, 64;\n" + kRead + "DONE:\n");
}

TEST_F(Checked, WriteAfterRead) {
  Run(kWrite +
      "bar.sync 0; setp.lt.u32 %p0, %r0, 32; xor.b32 %r3, %r1, 128;\n"
      "@%p0 ld.shared.u32 %r4, [%r3];\n@!%p0 st.shared.u32 [%r1], 5;\n");
  ExpectOne(Kind::kRace, 11, 10);
}

TEST_F(Checked, LanesOfOneWarp) {
  const std::string neighbour = "xor.b32 %r3, %r1, 4; ld.shared.u32 %r4, [%r3];\n";
  Run(kWrite + neighbour);
  ExpectOne(Kind::kRace, 9, 8);
  EXPECT_NE(machine.findings[0].text.find("__syncwarp()"), std::string::npos);
  ExpectClean(kWrite + "bar.warp.sync 0xffffffff;\n" + neighbour);
}

TEST_F(Checked, SameValueAndAtomicsDoNotRace) {
  ExpectClean("st.shared.u32 [box], 7;\n");
  Run("st.shared.u32 [box], %r0;\n");
  ExpectOne(Kind::kRace, 8, 8);
  ExpectClean("st.shared.u32 [%r1], 0; bar.sync 0; atom.shared.add.u32 %r3, [box], 1;\n");
  Run("st.shared.u32 [%r1], 0; bar.sync 0;\natom.shared.add.u32 %r3, [box], 1;\n"
      "ld.shared.u32 %r3, [box];\n");
  ExpectOne(Kind::kRace, 10, 9);
}

// Hardware lets a kernel read the rest of a granule; under check=1 such a read is a fault.
TEST_F(Checked, SharedMemoryEndsWhereTheKernelsDoes) {
  machine.checked = true;
  machine.Load(std::string(kHeader) +
               ".visible .entry k(.param .u64 p) { .reg .b32 %r; .shared .b32 box[2];\n"
               "ld.shared.u32 %r, [box+8]; ret; }\n");
  const std::optional<Fault> fault = machine.Run("k", {1}, {1}, address);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Checked, UninitialisedReads) {
  Run("ld.shared.u32 %r3, [%r1];\n");
  ExpectOne(Kind::kUninitialised, 8);
  Run("ld.local.u32 %r3, [own+4];\n");
  ExpectOne(Kind::kUninitialised, 8);
  Run("ld.shared.u8 %r3, [%r1];\n");
  ExpectOne(Kind::kUninitialised, 8);
  ExpectClean("st.local.u32 [own+4], 1; ld.local.u32 %r3, [own+4];\n");
  address = machine.Allocate(1024);
  MarkUninitialised(address, 1024);
  Run("mad.wide.u32 %l1, %r0, 4, %l0; @%p0 bra OUT; ld.global.u32 %r3, [%l1];\nOUT:\n");
  ExpectOne(Kind::kUninitialised, 8);
  EXPECT_NE(machine.findings[0].text.find("global memory at 0x"), std::string::npos);
  ExpectClean("mad.wide.u32 %l1, %r0, 4, %l0; st.global.u32 [%l1], 1; ld.global.u32 %r3, [%l1];\n");
}

// The pattern of what is not written must differ from it at each place, the first one included.
TEST_F(Checked, SmallNumbersAreNotTakenForUninitialised) {
  for (const char* const number : {"0", "1", "2", "0xffffffff", "0x3f800000"}) {
    ExpectClean("st.shared.u32 [%r1], " + std::string(number) + "; ld.shared.u32 %r3, [%r1];\n");
  }
}

TEST_F(Checked, DivergentBarriers) {
  Run("setp.lt.u32 %p0, %r0, 7;\n@%p0 bra SOME;\nbra ALL;\nSOME: bar.sync 0;\nALL: bar.sync 0;\n");
  ASSERT_FALSE(machine.findings.empty());
  EXPECT_EQ(machine.findings[0].kind, Kind::kDivergence);
  EXPECT_EQ(machine.findings[0].line, 11);
  Run("shfl.sync.idx.b32 %r3, %r0, 0, 31, 0x0000ffff;\n", 32);
  ExpectOne(Kind::kDivergence, 8);
  EXPECT_NE(machine.findings[0].text.find("thread (16,0,0) takes part"), std::string::npos)
      << machine.findings[0].text;
}

TEST_F(Checked, NamesTheSource) {
  machine.checked = true;
  machine.Load(std::string(kHeader) +
               ".visible .entry k(.param .u64 p) {\n.reg .b32 %r<4>; .shared .b32 word;\n"
               ".loc 1 41 3\nmov.u32 %r0, %tid.x;\n.loc 1 42 5\nst.shared.u32 [word], %r0;\n"
               "ret;\n}\n.file 1 \"/src/sum.cu\"\n");
  EXPECT_FALSE(machine.Run("k", {1}, {32}, uint64_t{0}).has_value());
  ExpectOne(Kind::kRace, 9, 9);
  EXPECT_NE(machine.findings[0].text.find("sum.cu:42 (PTX line 9)"), std::string::npos)
      << machine.findings[0].text;
}

TEST_F(Checked, WatchdogEndsEndlessLoops) {
  machine.watchdog_ms = 20;
  machine.Load(std::string(kHeader) +
               ".visible .entry k(.param .u64 p) {\n.loc 1 7 0\nAGAIN: bra AGAIN;\n}\n"
               ".file 1 \"spin.cu\"\n");
  const std::optional<Fault> fault = machine.Run("k", {4}, {64}, uint64_t{0});
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_EQ(fault->line, 6);
  EXPECT_NE(fault->ToString().find("spin.cu:7"), std::string::npos) << fault->ToString();
}

}  // namespace
}  // namespace softgpu::testing
