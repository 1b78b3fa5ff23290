// Warps of a block that run from barrier to barrier together, and those that part: whatever way
// they take, barriers hold.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

// %t: the thread, %w: its warp, %at: its word of `out`, %n: a parameter; `body` leaves %v.
std::string BlockKernel(const std::string& body) {
  return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry block(.param .u64 out, .param .u32 n)
{
  .reg .pred %p, %q;
  .reg .b32 %t, %w, %n, %v, %i, %s, %r<4>;
  .reg .b64 %at;
  .shared .align 4 .b32 cells[256];
  .shared .align 4 .b32 flag;
  mov.u32 %t, %tid.x;
  shr.u32 %w, %t, 5;
  ld.param.u32 %n, [n];
  mov.u32 %s, cells;
  mad.lo.u32 %s, %t, 4, %s;
  mov.u32 %v, 0;
)" + body +
         R"(
DONE:
  ld.param.u64 %at, [out];
  mov.u32 %r0, %ctaid.x;
  mad.lo.u32 %t, %r0, 256, %t;
  mad.wide.u32 %at, %t, 4, %at;
  st.global.u32 [%at], %v;
  ret;
}
)";
}

class InStep : public ::testing::Test {
 protected:
  static constexpr uint32_t kBlocks = 3;
  std::optional<Fault> Run(const std::string& body, uint32_t n = 0) {
    machine_.Load(BlockKernel(body));
    out_ = machine_.Allocate(kBlocks * 256 * 4);
    return machine_.Run("block", {kBlocks}, {256}, out_, n);
  }
  // What each of the blocks has made.
  std::vector<uint32_t> Out() const {
    const std::vector<uint32_t> first = machine_.Download<uint32_t>(out_, 256);
    for (uint32_t block = 1; block < kBlocks; ++block)
      EXPECT_EQ(machine_.Download<uint32_t>(out_ + block * 256 * 4, 256), first);
    return first;
  }

  Machine machine_;
  uint64_t out_ = 0;
};

// Each thread reads the cell of its neighbour in the next warp.
constexpr char kReadNext[] = R"(
  add.u32 %r0, %t, 32;
  and.b32 %r0, %r0, 255;
  mov.u32 %r1, cells;
  mad.lo.u32 %r1, %r0, 4, %r1;
  ld.shared.u32 %r2, [%r1];
)";

TEST_F(InStep, ManyRounds) {
  const std::string body = R"(
  st.shared.u32 [%s], %t;
  mov.u32 %i, 0;
LOOP:
  bar.sync 0;
)" + std::string(kReadNext) +
                           R"(
  bar.sync 0;
  add.u32 %r2, %r2, 1;
  st.shared.u32 [%s], %r2;
  mov.u32 %v, %r2;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, %n;
  @%p bra LOOP;
)";
  ASSERT_FALSE(Run(body, 3000).has_value());
  for (uint32_t t = 0; t < 256; ++t) EXPECT_EQ(Out()[t], (t + 3000 * 32) % 256 + 3000);
}

TEST_F(InStep, WarpsThatEndOpenTheBarrierForTheRest) {
  const std::string body = R"(
  st.shared.u32 [%s], %t;
  bar.sync 0;
  setp.ge.u32 %p, %w, 4;
  @%p bra DONE;
  bar.sync 0;
)" + std::string(kReadNext) +
                           "mov.u32 %v, %r2;\n";
  ASSERT_FALSE(Run(body).has_value());
  for (uint32_t t = 0; t < 256; ++t) EXPECT_EQ(Out()[t], t < 128 ? t + 32 : 0);
}

TEST_F(InStep, WhoHasEndedDoesNoMore) {
  const std::string body = R"(
  st.shared.u32 [flag], 0;
  bar.sync 0;
  setp.eq.u32 %p, %w, 3;
  @%p exit;
  bar.sync 0;
  ld.shared.u32 %r2, [flag];
  add.u32 %r2, %r2, 1;
  st.shared.u32 [flag], %r2;
  bar.sync 0;
  ld.shared.u32 %v, [flag];
)";
  ASSERT_FALSE(Run(body).has_value());
  const std::vector<uint32_t> out = Out();
  for (uint32_t t = 0; t < 256; ++t) {
    if (t / 32 != 3) EXPECT_EQ(out[t], 7u) << "warps run one after the other between barriers";
  }
}

TEST_F(InStep, OneBarrierAtTwoPlaces) {
  const std::string body = R"(
  st.shared.u32 [%s], %t;
  and.b32 %r0, %w, 1;
  setp.eq.u32 %p, %r0, 1;
  @%p bra ODD;
  bar.sync 0;
  bra MET;
ODD:
  bar.sync 0;
MET:
)" + std::string(kReadNext) +
                           R"(
  bar.sync 0;
  mov.u32 %v, %r2;
)";
  ASSERT_FALSE(Run(body).has_value());
  for (uint32_t t = 0; t < 256; ++t) EXPECT_EQ(Out()[t], (t + 32) % 256);
}

TEST_F(InStep, LanesOfAWarpComeApart) {
  const std::string body = R"(
  st.shared.u32 [%s], %t;
  and.b32 %r0, %t, 1;
  setp.eq.u32 %p, %r0, 1;
  @%p bra ODD;
  bar.sync 0;
  bra MET;
ODD:
  bar.sync 0;
MET:
)" + std::string(kReadNext) +
                           "mov.u32 %v, %r2;\n";
  ASSERT_FALSE(Run(body).has_value());
  for (uint32_t t = 0; t < 256; ++t) EXPECT_EQ(Out()[t], (t + 32) % 256);
}

// Lanes leave the loop one after another; also where the rest are at the end of their turn.
TEST_F(InStep, LanesLeaveALoopOneByOne) {
  const std::string body = R"(
  and.b32 %r0, %t, 31;
  add.u32 %r0, %r0, %n;
  mov.u32 %r1, %t;
  mov.u32 %i, 0;
LOOP:
  add.u32 %i, %i, 1;
  mad.lo.u32 %v, %i, %t, %v;
  add.u32 %r1, %r1, 3;
  setp.lt.u32 %p, %i, %r0;
  @%p bra LOOP;
  xor.b32 %v, %v, %r1;
  add.u32 %v, %v, %i;
)";
  for (uint32_t n : {1u, 2030u, 4070u}) {
    ASSERT_FALSE(Run(body, n).has_value());
    for (uint32_t t = 0; t < 256; ++t) {
      const uint32_t rounds = n + t % 32;
      EXPECT_EQ(Out()[t], ((rounds * (rounds + 1) / 2 * t) ^ (t + 3 * rounds)) + rounds);
    }
  }
}

TEST_F(InStep, LanesPartAgainAfterTheyHaveParted) {
  const std::string body = R"(
  and.b32 %r0, %t, 31;
  setp.lt.u32 %p, %r0, 20;
  @%p bra LOW;
  add.u32 %v, %v, 100;
  setp.lt.u32 %q, %r0, 25;
  @%q bra MIDDLE;
  add.u32 %v, %v, 1000;
MIDDLE:
  add.u32 %v, %v, %r0;
  bra MET;
LOW:
  add.u32 %v, %v, 7;
  setp.lt.u32 %q, %r0, 10;
  @%q bra MET;
  add.u32 %v, %v, %w;
MET:
  add.u32 %v, %v, 1;
)";
  ASSERT_FALSE(Run(body).has_value());
  for (uint32_t t = 0; t < 256; ++t) {
    const uint32_t lane = t % 32;
    const uint32_t high = 100 + (lane < 25 ? 0 : 1000) + lane, low = 7 + (lane < 10 ? 0 : t / 32);
    EXPECT_EQ(Out()[t], (lane < 20 ? low : high) + 1);
  }
}

// Each block counts up words of its own, long enough for several threads to share the grid.
TEST_F(InStep, EveryBlockOfALargeGridRunsOnce) {
  constexpr uint32_t kMany = 1999;
  machine_.Load(BlockKernel(R"(
  mov.u32 %i, 0;
LOOP:
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 100;
  @%p bra LOOP;
  ld.param.u64 %at, [out];
  mov.u32 %r0, %ctaid.x;
  mad.lo.u32 %r1, %r0, 256, %t;
  mad.wide.u32 %at, %r1, 4, %at;
  ld.global.u32 %v, [%at];
  add.u32 %v, %v, 1;
)"));
  const uint64_t out = machine_.Allocate(kMany * 256 * 4);
  ASSERT_FALSE(machine_.Run("block", {kMany}, {256}, out, 0u).has_value());
  const std::vector<uint32_t> runs = machine_.Download<uint32_t>(out, kMany * 256);
  EXPECT_EQ(std::count(runs.begin(), runs.end(), 1u), kMany * 256);
}

TEST_F(InStep, AWarpAwaitsAnother) {
  const std::string body = R"(
  st.shared.u32 [flag], 0;
  bar.sync 0;
  setp.eq.u32 %p, %w, 7;
  @%p st.shared.u32 [flag], 5;
WAIT:
  ld.volatile.shared.u32 %v, [flag];
  setp.eq.u32 %p, %v, 0;
  @%p bra WAIT;
  bar.sync 0;
)";
  ASSERT_FALSE(Run(body).has_value());
  for (uint32_t t = 0; t < 256; ++t) EXPECT_EQ(Out()[t], 5u);
}

TEST_F(InStep, ABarrierThatSomeOnlyArriveAt) {
  const std::string body = R"(
  setp.ge.u32 %p, %w, 4;
  @%p bra CONSUMER;
  st.shared.u32 [%s], %t;
  bar.arrive 1, 256;
  bra MET;
CONSUMER:
  bar.sync 1, 256;
)" + std::string(kReadNext) +
                           R"(
  setp.lt.u32 %q, %r0, 128;
  @%q mov.u32 %v, %r2;
MET:
  bar.sync 0;
)";
  ASSERT_FALSE(Run(body).has_value());
  for (uint32_t t = 0; t < 256; ++t) EXPECT_EQ(Out()[t], t < 224 ? 0 : t - 224);
}

TEST_F(InStep, TheWatchdogEndsARoundDance) {
  machine_.watchdog_ms = 20;
  const std::optional<Fault> fault = Run("LOOP:\nbar.sync 0;\nbra LOOP;\n");
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, CUDA_ERROR_LAUNCH_TIMEOUT);
}

}  // namespace
}  // namespace softgpu::testing
