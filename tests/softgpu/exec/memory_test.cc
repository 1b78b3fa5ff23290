// ld and st of long vectors and 128 bits, cache policies, and instructions that are hints.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

constexpr char kHeader[] = ".version 8.8\n.target sm_100\n.address_size 64\n";

class MemoryForms : public ::testing::Test {
 protected:
  // Runs `body` in one thread with %l0 = in, %l1 = out.
  std::optional<Fault> Run(const std::string& body, uint64_t in, uint64_t out) {
    machine.Load(std::string(kHeader) +
                 ".visible .entry k(.param .u64 in, .param .u64 out) {\n.reg .b32 %r<16>;\n"
                 ".reg .b64 %l<8>;\n.reg .b128 %o<2>;\n.reg .pred %p<2>;\n"
                 ".shared .align 16 .b8 box[64];\nld.param.u64 %l0, [in];\n"
                 "ld.param.u64 %l1, [out];\n" +
                 body + "\nret; }\n");
    return machine.Run("k", {1}, {1}, in, out);
  }
  Machine machine;
};

TEST_F(MemoryForms, VectorsOfEight) {
  std::vector<uint32_t> words(8);
  std::iota(words.begin(), words.end(), 100);
  const uint64_t in = machine.Upload(words), out = machine.Allocate(64);
  const std::string copy =
      "ld.global.v8.b32 {%r0, %r1, _, %r3, %r4, %r5, %r6, %r7}, [%l0];\n"
      "st.global.L1::no_allocate.v8.b32 [%l1], {%r0, %r1, 7, %r3, %r4, %r5, %r6, %r7};";
  ASSERT_FALSE(Run(copy, in, out).has_value());
  words[2] = 7;
  EXPECT_EQ(machine.Download<uint32_t>(out, 8), words);
  const std::optional<Fault> fault = Run(copy, in, out + 16);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_MISALIGNED_ADDRESS);
  ASSERT_FALSE(Run("ld.global.v4.b64 {%l0, %l2, %l3, %l4}, [%l0];\n"
                   "st.global.v4.b64 [%l1], {%l4, %l3, %l2, %l0};",
                   in, out)
                   .has_value());
  EXPECT_EQ(machine.Download<uint32_t>(out, 8)[0], 106u);
}

TEST_F(MemoryForms, HundredAndTwentyEightBits) {
  const std::vector<uint64_t> words = {0x0123456789abcdef, 0xfedcba9876543210};
  const uint64_t in = machine.Upload(words), out = machine.Allocate(64);
  ASSERT_FALSE(Run("ld.global.b128 %o0, [%l0];\nst.shared.b128 [box], %o0;\n"
                   "ld.shared.b128 %o1, [box];\nmov.b128 {%l2, %l3}, %o1;\n"
                   "mov.b128 %o1, {%l3, %l2};\nst.global.b128 [%l1], %o1;",
                   in, out)
                   .has_value());
  EXPECT_EQ(machine.Download<uint64_t>(out, 2), (std::vector<uint64_t>{words[1], words[0]}));
}

// What stands between the brackets counts elements, as ptxas assembles it; Dr.Jit indexes its table
// of functions so. Of a vector's type it counts components.
TEST_F(MemoryForms, VariablesIndexedByRegisters) {
  machine.Load(
      std::string(kHeader) +
      ".global .align 4 .b32 table[4] = {10, 20, 30, 40};\n"
      ".visible .entry k(.param .u64 out) {\n.reg .pred %p; .reg .b32 %r<6>; .reg .s32 %s;\n"
      ".reg .b64 %l<4>;\n.local .align 4 .b32 kept[4];\n.shared .align 4 .b32 low[8], box[8];\n"
      "ld.param.u64 %l0, [out];\nmov.u32 %r0, %tid.x;\nmul.lo.u32 %r1, %r0, 4;\n"
      "mul.wide.u32 %l1, %r0, 4;\nnot.b32 %s, %r0;\nadd.u64 %l0, %l0, %l1;\n"
      "cvt.u64.u32 %l1, %r0;\n"
      "st.local.b32 kept[%r0], %r0;\nst.shared.b32 low[%l1+4], %r1;\n"
      "ld.global.b32 %r2, table[%r0];\nld.global.b32 %r3, table[1];\n"
      "add.u32 %r2, %r2, %r3;\nld.local.b32 %r4, kept[%r0+0];\nadd.u32 %r2, %r2, %r4;\n"
      "ld.shared.b32 %r4, box[%s];\nadd.u32 %r2, %r2, %r4;\n"
      "setp.eq.u32 %p, %r0, 1;\n@%p bra TWICE;\nbra.uni STORE;\n"
      "TWICE: ld.global.b32 %r3, table[%r0+2];\nadd.u32 %r2, %r2, %r3;\n"
      "STORE: st.global.b32 [%l0], %r2;\nret; }\n");
  const uint64_t out = machine.Allocate(64);
  ASSERT_FALSE(machine.Run("k", {1}, {4}, out).has_value());
  EXPECT_EQ(machine.Download<uint32_t>(out, 4), (std::vector<uint32_t>{42, 89, 56, 63}));
}

// Hardware gives shared memory in granules of 128 bytes, and reductions read all of a granule.
TEST_F(MemoryForms, TheGranuleOfSharedMemoryIsReadable) {
  const uint64_t in = machine.Allocate(64), out = machine.Allocate(64);
  EXPECT_FALSE(Run("ld.shared.b32 %r0, [box+124];", in, out).has_value());
  EXPECT_FALSE(Run("st.shared.b32 [box+64], 7; ld.shared.b32 %r0, [box+64];\n"
                   "st.global.b32 [%l1], %r0;",
                   in, out)
                   .has_value());
  EXPECT_EQ(machine.Download<uint32_t>(out, 1)[0], 7u);
  const std::optional<Fault> fault = Run("ld.shared.b32 %r0, [box+128];", in, out);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(MemoryForms, PoliciesAndHintsChangeNothing) {
  const uint64_t in = machine.Upload(std::vector<uint32_t>{5, 6}), out = machine.Allocate(64);
  const std::optional<Fault> fault =
      Run("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %l2, 0.5;\n"
          "createpolicy.fractional.L2::evict_first.b64 %l2;\n"
          "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %l3, [%l0], 64, 128;\n"
          "ld.global.nc.L1::evict_last.L2::cache_hint.v2.b32 {%r0, %r1}, [%l0], %l2;\n"
          "prefetch.global.L2::evict_last [%l0];\nprefetchu.L1 [%l0];\n"
          "applypriority.global.L2::evict_normal [%l0], 128;\n"
          "st.global.L2::cache_hint.v2.b32 [%l1], {%r1, %r0}, %l2;\n"
          "red.global.add.L2::cache_hint.u32 [%l1], 1, %l2;\n"
          "atom.global.cas.L2::cache_hint.b32 %r2, [%l1+4], %r0, 9, %l2;\n"
          "getctarank.u64 %r3, %l0; mapa.u64 %l4, %l1, %r3; st.global.b32 [%l4+8], %r3;\n"
          "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
          "setmaxnreg.inc.sync.aligned.u32 64; fence.proxy.async.shared::cta;\n"
          "fence.mbarrier_init.release.cluster; griddepcontrol.wait;",
          in, out);
  ASSERT_FALSE(fault.has_value()) << fault->ToString();
  EXPECT_EQ(machine.Download<uint32_t>(out, 3), (std::vector<uint32_t>{7, 9, 0}));
}

TEST_F(MemoryForms, BulkStoreFillsSharedMemory) {
  const uint64_t in = machine.Upload(std::vector<uint64_t>{~0ull}), out = machine.Allocate(64);
  ASSERT_FALSE(Run("ld.global.u64 %l2, [%l0]; st.shared.u64 [box], %l2; st.shared.u64 [box+8], "
                   "%l2; st.shared.u64 [box+16], %l2;\nst.bulk.shared::cta [box+8], 8, 0;\n"
                   "ld.shared.u64 %l3, [box]; ld.shared.u64 %l4, [box+8]; ld.shared.u64 %l5, "
                   "[box+16];\nst.global.v2.u64 [%l1], {%l3, %l4}; st.global.u64 [%l1+16], %l5;",
                   in, out)
                   .has_value());
  EXPECT_EQ(machine.Download<uint64_t>(out, 3), (std::vector<uint64_t>{~0ull, 0, ~0ull}));
}

// `out` lies 8 bytes after `in` among the parameters.
TEST_F(MemoryForms, ParametersByTheirAddress) {
  const uint64_t in = machine.Upload(std::vector<uint64_t>{1}), out = machine.Allocate(64);
  ASSERT_FALSE(Run("mov.b64 %l2, in; ld.param.u64 %l3, [%l2+8]; st.global.u64 [%l3], 5;\n"
                   "ld.param.u32 %r0, [%l2+4]; st.global.b32 [%l3+8], %r0;\n"
                   "ld.param.v2.u32 {%r1, %r2}, [%l2]; st.global.v2.b32 [%l3+16], {%r1, %r2};",
                   in, out)
                   .has_value());
  EXPECT_EQ(machine.Download<uint64_t>(out, 3), (std::vector<uint64_t>{5, in >> 32, in}));
  const std::optional<Fault> fault =
      Run("mov.b64 %l2, in; ld.param.u64 %l3, [%l2+16]; st.global.u64 [%l1], %l3;", in, out);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

// A register that is written again, in all lanes or in some, or in ways of its own, is read anew.
TEST_F(MemoryForms, AddressesOfParametersThatChange) {
  const uint64_t in = machine.Upload(std::vector<uint64_t>{1}), out = machine.Allocate(64);
  for (const char* change :
       {"add.s64 %l2, %l2, 8;", "mov.b64 %l2, out;",
        "setp.ne.u64 %p0, %l1, 0;\n@%p0 mov.b64 %l2, out;",
        "mov.b64 %l3, 8; mad.lo.u64 %l2, %l3, 1, %l2;",
        "mov.b64 {%r0, %r1}, 8; mov.b64 %l2, {%r0, %r1};", "selp.b64 %l2, 8, %l2, 1;",
        "st.global.u64 [%l1+8], 8; ld.global.u64 %l2, [%l1+8];"}) {
    const std::string body = std::string("mov.b64 %l2, in;\n") + change +
                             "\nld.param.u64 %l3, [%l2]; st.global.u64 [%l1], %l3;";
    const std::optional<Fault> fault = Run(body, in, out);
    ASSERT_FALSE(fault.has_value()) << change << ": " << fault->ToString();
    EXPECT_EQ(machine.Download<uint64_t>(out, 1)[0], out) << change;
  }
  // One lane's guard leaves the register of others as it was.
  ASSERT_FALSE(Run("setp.eq.u64 %p0, %l1, 0;\nmov.b64 %l2, out;\n@%p0 mov.b64 %l2, in;\n"
                   "ld.param.u64 %l3, [%l2]; st.global.u64 [%l1], %l3;",
                   in, out)
                   .has_value());
  EXPECT_EQ(machine.Download<uint64_t>(out, 1)[0], out);
}

}  // namespace
}  // namespace softgpu::testing
