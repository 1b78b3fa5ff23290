// mbarriers, bulk copies, wide atomics, reductions of floats, and memory of the stack.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "softgpu/exec/half_scalar.h"
#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

constexpr char kStart[] =
    ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
    ".reg .b32 %r<12>; .reg .b64 %l<10>; .reg .b128 %o<4>; .reg .pred %p<4>; .reg .b16 %h<9>;\n"
    ".shared .align 16 .b8 box[1024]; .shared .align 8 .b64 bar;\n"
    "ld.param.u64 %l0, [p]; mov.u32 %r0, %tid.x;\n";

class Async : public ::testing::Test {
 protected:
  std::optional<Fault> Run(const std::string& body, uint64_t p, uint32_t threads,
                           uint32_t blocks = 1) {
    machine.Load(kStart + body + "\nret; }\n");
    return machine.Run("k", {blocks}, {threads}, p);
  }
  Machine machine;
};

// Three phases: each thread writes its word, arrives, waits, and reads its neighbour's.
TEST_F(Async, MbarrierPhases) {
  const uint64_t out = machine.Allocate(96 * 4);
  const std::string wait[] = {
      "mbarrier.arrive.shared::cta.b64 %l2, [bar];\n"
      "W: mbarrier.try_wait.shared.b64 %p0, [bar], %l2;\n@!%p0 bra W;\n",
      "mbarrier.arrive.release.cta.shared.b64 _, [bar], 1; and.b32 %r6, %r5, 1;\n"
      "W: mbarrier.test_wait.parity.acquire.cta.shared.b64 %p0, [bar], %r6;\n@!%p0 bra W;\n"};
  for (const std::string& form : wait) {
    const std::optional<Fault> fault = Run(
        "setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [bar], 96; bar.sync 0;\n"
        "mov.u32 %r1, box; mad.lo.u32 %r1, %r0, 4, %r1; add.u32 %r2, %r0, 33;\n"
        "rem.u32 %r2, %r2, 96; mov.u32 %r3, box; mad.lo.u32 %r3, %r2, 4, %r3;\n"
        "mov.u32 %r4, %r0; mov.u32 %r5, 0;\nPHASE: st.shared.u32 [%r1], %r4;\n" +
            form +
            "ld.shared.u32 %r4, [%r3]; bar.sync 0;\nadd.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 3;\n"
            "@%p2 bra PHASE;\nmad.wide.u32 %l1, %r0, 4, %l0; st.global.u32 [%l1], %r4;",
        out, 96);
    ASSERT_FALSE(fault.has_value()) << fault->ToString();
    const std::vector<uint32_t> got = machine.Download<uint32_t>(out, 96);
    for (uint32_t t = 0; t < 96; ++t) ASSERT_EQ(got[t], (t + 99) % 96) << t;
  }
}

TEST_F(Async, BulkCopiesTellTheirMbarrier) {
  std::vector<uint32_t> words(256);
  for (uint32_t n = 0; n < 128; ++n) words[n] = n * n;
  const uint64_t p = machine.Upload(words);
  const std::optional<Fault> fault =
      Run("setp.eq.u32 %p1, %r0, 0; @!%p1 bra WAIT0;\n"
          "mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;\n"
          "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;\n"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%l0], 256, "
          "[bar];\n"
          "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; selp.u32 %r5, 1, 0, %p2;\n"
          "st.global.u32 [%l0+768], %r5;\n"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
          "[box+256], [%l0+256], 256, [bar], 1;\nWAIT0: bar.sync 0;\n"
          "W: mbarrier.try_wait.parity.shared.b64 %p0, [bar], 0;\n@!%p0 bra W;\n@!%p1 bra END;\n"
          "fence.proxy.async.shared::cta;\n"
          "cp.async.bulk.global.shared::cta.bulk_group [%l0+512], [box+128], 256;\n"
          "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\n"
          "cp.async.bulk.prefetch.L2.global [%l0], 64;\nEND:\n",
          p, 64);
  ASSERT_FALSE(fault.has_value()) << fault->ToString();
  const std::vector<uint32_t> got = machine.Download<uint32_t>(p, 256);
  EXPECT_EQ(got[192], 0u);  // half of the bytes were missing
  for (uint32_t n = 0; n < 64; ++n) ASSERT_EQ(got[128 + n], words[32 + n]) << n;
  EXPECT_EQ(Run("cp.async.bulk.global.shared::cta.bulk_group [%l0], [box], 24;", p, 1)->code,
            CUDA_ERROR_ILLEGAL_INSTRUCTION);
}

// Sums and other reductions in bulk: of shared memory into global memory, and back into shared.
TEST_F(Async, BulkReductions) {
  const std::string fill =
      "mov.u32 %r1, box; mad.lo.u32 %r2, %r0, 4, %r1; add.u32 %r3, %r0, 10; st.shared.u32 [%r2], "
      "%r3;\n"
      "bar.sync 0; setp.ne.u32 %p0, %r0, 0; @%p0 bra END;\n";
  std::vector<uint32_t> words(32, 15);
  uint64_t p = machine.Upload(words);
  ASSERT_FALSE(
      Run(fill + "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%l0], [box], 64;\n"
                 "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u32 [%l0+64], [box], 64;\n"
                 "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND:\n",
          p, 32, 4)
          .has_value());
  std::vector<uint32_t> got = machine.Download<uint32_t>(p, 32);
  for (uint32_t n = 0; n < 16; ++n) {
    ASSERT_EQ(got[n], 15 + 4 * (n + 10)) << n;  // four blocks
    ASSERT_EQ(got[16 + n], std::max(15u, n + 10)) << n;
  }
  ASSERT_FALSE(Run(fill +
                       "mbarrier.init.shared.b64 [bar], 1;\n"
                       "mbarrier.arrive.expect_tx.shared.b64 %l2, [bar], 32;\n"
                       "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::"
                       "bytes.inc.u32 [box+32], [box], 32, [bar];\n"
                       "mbarrier.test_wait.shared.b64 %p1, [bar], %l2; selp.u32 %r5, 1, 0, %p1;\n"
                       "st.global.u32 [%l0], %r5; ld.shared.u32 %r6, [box+36];\n"
                       "st.global.u32 [%l0+4], %r6;\nEND:\n",
                   p, 32)
                   .has_value());
  got = machine.Download<uint32_t>(p, 2);
  EXPECT_EQ(got[0], 1u);
  EXPECT_EQ(got[1], 0u);  // 19 had passed its end, 11
  p = machine.Upload(std::vector<uint16_t>(8, exec::scalar::FloatToHalf(1.5f)));
  ASSERT_FALSE(
      Run("mov.b32 %r1, 0x40003c00; st.shared.v4.b32 [box], {%r1, %r1, %r1, %r1};\n"
          "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%l0], [box], 16;",
          p, 1)
          .has_value());
  EXPECT_EQ(machine.Download<uint16_t>(p, 8)[3], exec::scalar::FloatToHalf(3.5f));
}

// What blocks of a cluster do to each other, in a cluster of one.
TEST_F(Async, StoresAndReductionsTellTheirMbarrier) {
  const uint64_t p = machine.Allocate(32);
  ASSERT_FALSE(Run("mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 %l2, "
                   "[bar], 20;\n"
                   "mov.u32 %r1, box; mapa.shared::cluster.u32 %r1, %r1, 0; mov.u32 %r2, bar;\n"
                   "mov.u32 %r3, 7; mov.u32 %r4, 9;\n"
                   "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r1], {%r3, "
                   "%r4}, [%r2];\n"
                   "st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%r1+8], 5, [%r2];\n"
                   "mbarrier.test_wait.shared.b64 %p0, [bar], %l2; selp.u32 %r5, 1, 0, %p0;\n"
                   "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
                   "[%r1+4], %r3, "
                   "[%r2];\n"
                   "mbarrier.test_wait.shared.b64 %p1, [bar], %l2; selp.u32 %r6, 2, 0, %p1;\n"
                   "st.async.release.gpu.global.u32 [%l0+16], 3; add.u32 %r5, %r5, %r6;\n"
                   "setp.eq.u32 %p2, %r0, 99; @%p2 st.async.release.gpu.global.u32 [%l0+16], 4;\n"
                   "ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [box];\n"
                   "st.global.v4.u32 [%l0], {%r7, %r8, %r9, %r5};",
                   p, 1)
                   .has_value());
  EXPECT_EQ(machine.Download<uint32_t>(p, 5), (std::vector<uint32_t>{7, 16, 5, 2, 3}));
}

TEST_F(Async, CopiesArriveAtTheirMbarrier) {
  const uint64_t p = machine.Upload(std::vector<uint32_t>{1, 2, 3, 4, 0});
  ASSERT_FALSE(Run("mbarrier.init.shared.b64 [bar], 2;\n"
                   "cp.async.ca.shared.global [box], [%l0], 16;\n"
                   "cp.async.mbarrier.arrive.shared.b64 [bar];\n"
                   "mbarrier.arrive.shared.b64 %l2, [bar]; mbarrier.pending_count.b64 %r1, %l2;\n"
                   "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n"
                   "mbarrier.test_wait.shared.b64 %p0, [bar], %l2; selp.u32 %r2, 10, 0, %p0;\n"
                   "add.u32 %r2, %r2, %r1; ld.shared.u32 %r3, [box+8]; add.u32 %r2, %r2, %r3;\n"
                   "mbarrier.inval.shared.b64 [bar]; st.global.u32 [%l0+16], %r2;",
                   p, 1)
                   .has_value());
  EXPECT_EQ(machine.Download<uint32_t>(p, 5)[4], 15u);
}

TEST_F(Async, WideAtomics) {
  const std::vector<uint64_t> zeros(8);
  uint64_t p = machine.Upload(zeros);
  // Every thread adds one to the low and three to the high word, both at once.
  ASSERT_FALSE(Run("ld.global.v2.u64 {%l1, %l2}, [%l0];\n"
                   "AGAIN: add.u64 %l3, %l1, 1; add.u64 %l4, %l2, 3; mov.b128 %o0, {%l1, %l2};\n"
                   "mov.b128 %o1, {%l3, %l4}; atom.global.cas.b128 %o2, [%l0], %o0, %o1;\n"
                   "mov.b128 {%l5, %l6}, %o2; setp.ne.u64 %p0, %l5, %l1; mov.u64 %l1, %l5;\n"
                   "mov.u64 %l2, %l6; @%p0 bra AGAIN;\n"
                   "atom.global.exch.b128 %o3, [%l0+16], %o1;",
                   p, 64, 8)
                   .has_value());
  EXPECT_EQ(machine.Download<uint64_t>(p, 2), (std::vector<uint64_t>{512, 1536}));
  p = machine.Upload(std::vector<float>{1, 2, 3, 4, 0, 0, 0, 0});
  ASSERT_FALSE(Run("mov.b32 %r1, 0f3F800000; mov.b32 %r2, 0f40000000;\n"
                   "atom.global.add.v4.f32 {%r3, %r4, %r5, %r6}, [%l0], {%r1, %r2, %r1, %r2};\n"
                   "red.global.add.v2.f32 [%l0+8], {%r1, %r1}; st.global.u32 [%l0+16], %r6;",
                   p, 1)
                   .has_value());
  EXPECT_EQ(machine.Download<float>(p, 5), (std::vector<float>{2, 4, 5, 7, 4}));
  const auto half = exec::scalar::FloatToHalf;
  p = machine.Upload(std::vector<uint16_t>{half(1), half(-2), 0x7fff, 0x8000});
  ASSERT_FALSE(Run("mov.b16 %h0, 0x3800; mov.b16 %h1, 0;\n"
                   "atom.global.max.noftz.v4.f16 {%h2, %h3, %h4, %h5}, [%l0], "
                   "{%h0, %h0, %h0, %h1};",
                   p, 1)
                   .has_value());
  EXPECT_EQ(machine.Download<uint16_t>(p, 4),
            (std::vector<uint16_t>{half(1), half(0.5), half(0.5), 0}));
  EXPECT_EQ(Run("red.global.add.v4.f32 [%l0+8], {%r1, %r1, %r1, %r1};", p, 1)->code,
            CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_F(Async, ReductionsOfFloats) {
  std::vector<float> x(32);
  for (int n = 0; n < 32; ++n) x[n] = static_cast<float>((n * 7) % 32 - 20);
  x[5] = NAN;
  const auto reduce = [&](const std::string& op) {
    const uint64_t p = machine.Upload(x);
    EXPECT_FALSE(Run("mad.wide.u32 %l1, %r0, 4, %l0; ld.global.b32 %r1, [%l1];\nredux.sync." + op +
                         ".f32 %r2, %r1, 0xffffffff; st.global.b32 [%l1], %r2;",
                     p, 32)
                     .has_value());
    return machine.Download<float>(p, 32)[9];
  };
  EXPECT_EQ(reduce("min"), -20);
  EXPECT_EQ(reduce("max"), 11);
  EXPECT_EQ(reduce("max.abs"), 20);
  EXPECT_EQ(reduce("min.abs"), 0);
  EXPECT_TRUE(std::isnan(reduce("min.NaN")));
}

TEST_F(Async, StackMemory) {
  const uint64_t p = machine.Allocate(64 * 4);
  ASSERT_FALSE(Run("add.u32 %r1, %r0, 4; shl.b32 %r1, %r1, 2; stacksave.u64 %l5;\n"
                   "cvt.u64.u32 %l1, %r1; alloca.u64 %l2, %l1, 16; alloca.u64 %l3, 8, 8;\n"
                   "st.local.u32 [%l2], %r0; st.local.u32 [%l3], 1000; cvta.local.u64 %l4, %l2;\n"
                   "ld.u32 %r2, [%l4]; ld.local.u32 %r3, [%l3]; add.u32 %r2, %r2, %r3;\n"
                   "stackrestore.u64 %l5; alloca.u64 %l6, %l1, 16; sub.u64 %l6, %l6, %l2;\n"
                   "cvt.u32.u64 %r4, %l6; add.u32 %r2, %r2, %r4;\n"
                   "mad.wide.u32 %l1, %r0, 4, %l0; st.global.u32 [%l1], %r2;",
                   p, 64)
                   .has_value());
  const std::vector<uint32_t> got = machine.Download<uint32_t>(p, 64);
  for (uint32_t t = 0; t < 64; ++t) ASSERT_EQ(got[t], 1000 + t);
  const std::optional<Fault> fault = Run("mov.u64 %l1, 0x40000000; alloca.u64 %l2, %l1;", p, 1);
  ASSERT_TRUE(fault.has_value());
  EXPECT_NE(fault->what.find("stack overflow"), std::string::npos);
}

}  // namespace
}  // namespace softgpu::testing
