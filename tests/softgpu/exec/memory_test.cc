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

}  // namespace
}  // namespace softgpu::testing
