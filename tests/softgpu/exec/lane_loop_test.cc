// Loops that do little but load, and that lanes leave one after another: compiled code runs them
// lane by lane. All is as if the lanes had run in step.
#include <gtest/gtest.h>

#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

constexpr uint32_t kThreads = 64;

// out[t] = sum of values[k * stride] for begin[t] <= k < begin[t + 1]; `rounds` counts too.
std::string SumKernel(const std::string& branch) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry sum(.param .u64 begin, .param .u64 places, .param .u64 out)\n"
         "{ .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %l<9>;\nld.param.u64 %l0, [begin];\n"
         "ld.param.u64 %l1, [places];\nld.param.u64 %l2, [out];\nmov.u32 %r0, %tid.x;\n"
         "mad.wide.u32 %l3, %r0, 4, %l0;\nld.global.u32 %r1, [%l3];\nld.global.u32 %r2, [%l3+4];\n"
         "mov.u32 %r3, 0;\nmov.u32 %r4, 0;\nsetp.ge.u32 %p0, %r1, %r2;\n@%p0 bra DONE;\n"
         "mad.wide.u32 %l4, %r1, 8, %l1;\nLOOP:\nld.global.u64 %l5, [%l4];\n"
         "ld.global.u32 %r5, [%l5];\n"  // line 20
         "add.u32 %r3, %r3, %r5;\nadd.u32 %r4, %r4, 1;\nadd.u64 %l4, %l4, 8;\n"
         "add.u32 %r1, %r1, 1;\n" +
         branch +
         "\nDONE:\nmad.wide.u32 %l6, %r0, 8, %l2;\nst.global.v2.u32 [%l6], {%r3, %r4};\nret; }";
}

class LaneLoops : public ::testing::TestWithParam<std::string> {
 protected:
  // Runs rows of these lengths; rounds point at words of their own unless `stray` says where.
  std::optional<Fault> Run(const std::vector<uint32_t>& lengths,
                           const std::map<std::pair<uint32_t, uint32_t>, uint64_t>& stray = {}) {
    machine.Load(SumKernel(GetParam()));
    std::vector<uint32_t> begin = {0}, values;
    std::vector<uint64_t> places;
    for (uint32_t k = 0; k < 4096; ++k) values.push_back(k * 2654435761u);
    const uint64_t at = machine.Upload(values);
    expected.clear();
    for (uint32_t row = 0; row < kThreads; ++row) {
      uint32_t sum = 0;
      for (uint32_t k = 0; k < lengths[row]; ++k) {
        const uint32_t place = (row * 97 + k * 1231) % 4096;
        const auto elsewhere = stray.find({row, k});
        places.push_back(elsewhere == stray.end() ? at + place * 4 : elsewhere->second);
        sum += values[place];
      }
      expected.insert(expected.end(), {sum, lengths[row]});
      begin.push_back(static_cast<uint32_t>(places.size()));
    }
    const uint64_t in = machine.Upload(begin), pointers = machine.Upload(places);
    out = machine.Allocate(kThreads * 8);
    return machine.Run("sum", {1}, {kThreads}, in, pointers, out);
  }
  static std::vector<uint32_t> Lengths() {
    std::vector<uint32_t> lengths;
    for (uint32_t row = 0; row < kThreads; ++row) lengths.push_back(row * 7919 % 29);
    return lengths;
  }
  void ExpectSums() { EXPECT_EQ(machine.Download<uint32_t>(out, expected.size()), expected); }

  Machine machine;
  std::vector<uint32_t> expected;
  uint64_t out = 0;
};

TEST_P(LaneLoops, RowsOfAllLengths) {
  ASSERT_FALSE(Run(Lengths()).has_value());
  ExpectSums();
}

// Some go on for longer than a turn is.
TEST_P(LaneLoops, LongRows) {
  std::vector<uint32_t> lengths = Lengths();
  lengths[0] = 3000;
  lengths[5] = 9001;
  lengths[31] = 2048;
  lengths[40] = 4097;
  ASSERT_FALSE(Run(lengths).has_value());
  ExpectSums();
}

// The first in step, whichever lane comes to its own first.
TEST_P(LaneLoops, PageFaults) {
  const uint64_t far = machine.Unmapped();
  const std::vector<uint32_t> lengths(kThreads, 20);
  std::vector<uint32_t> some = lengths;
  for (uint32_t row = 0; row < kThreads; row += 2) some[row] = 4;
  const std::optional<Fault> fault =
      Run(some, {{{3, 15}, far}, {{9, 12}, far + 64}, {{11, 12}, far + 128}, {{35, 0}, far}});
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(fault->thread.x, 9u);
  EXPECT_EQ(fault->line, 20);
  EXPECT_EQ(fault->address, far + 64);
  ASSERT_FALSE(Run(Lengths()).has_value());
  ExpectSums();
}

TEST_P(LaneLoops, AddressesOutsideAndMisaligned) {
  std::vector<uint32_t> lengths(kThreads, 20);
  for (uint32_t row = 0; row < kThreads; row += 2) lengths[row] = 4;
  for (const uint64_t address : {uint64_t{16}, machine.Unmapped() + 2}) {
    const std::optional<Fault> fault = Run(lengths, {{{3, 15}, address}, {{21, 14}, address}});
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->thread.x, 21u);
    EXPECT_EQ(fault->line, 20);
  }
}

INSTANTIATE_TEST_SUITE_P(Branches, LaneLoops,
                         ::testing::Values("setp.lt.u32 %p1, %r1, %r2;\n@%p1 bra LOOP;",
                                           "setp.ge.u32 %p1, %r1, %r2;\n@!%p1 bra LOOP;"));

// Lane 5 waits in the loop for what lane 9 stores behind it.
TEST(LaneLoop, WaitsForALaneThatLeaves) {
  Machine machine;
  machine.Load(
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry wait(.param .u64 flags)\n"
      "{ .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %l<4>;\nld.param.u64 %l0, [flags];\n"
      "mov.u32 %r0, %tid.x;\nmad.wide.u32 %l1, %r0, 64, %l0;\nLOOP:\n"
      "ld.global.u32 %r1, [%l1];\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra LOOP;\n"
      "setp.ne.u32 %p1, %r0, 9;\n@%p1 bra OUT;\nst.global.u32 [%l0+320], %r0;\nOUT:\n"
      "add.u32 %r1, %r1, 1;\nst.global.u32 [%l1], %r1;\nret; }");
  std::vector<uint32_t> flags(32 * 16, 1);
  flags[5 * 16] = 0;
  const uint64_t at = machine.Upload(flags);
  ASSERT_FALSE(machine.Run("wait", {1}, {32}, at).has_value());
  EXPECT_EQ(machine.Download<uint32_t>(at + 320, 1)[0], 10u);
}

}  // namespace
}  // namespace softgpu::testing
