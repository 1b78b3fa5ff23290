// Loops that only wait for other threads: the test recognises them, and their lanes, warps and
// blocks make way for others.
#include <gtest/gtest.h>

#include <algorithm>

#include "softgpu/exec/waiting_loops.h"
#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

// %t: the thread, %lock: the first parameter, %word: the second.
std::string WaitingKernel(const std::string& body) {
  return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry waits(.param .u64 lock, .param .u64 word)
{
  .reg .pred %p, %q;
  .reg .b32 %t, %i, %v, %r<8>;
  .reg .b64 %lock, %word, %at, %l<4>;
  .shared .align 8 .b64 cell;
  ld.param.u64 %lock, [lock];
  ld.param.u64 %word, [word];
  mov.u32 %t, %tid.x;
  mov.u32 %i, 0;
)" + body +
         "\n  ret;\n}\n";
}

bool HasWaitingLoop(const std::string& body) {
  std::string log;
  const std::shared_ptr<const PtxModule> module = PtxModule::Parse(WaitingKernel(body), &log);
  EXPECT_NE(module, nullptr) << log;
  if (module == nullptr) return false;
  const auto& kernel = static_cast<const ptx::KernelImpl&>(*module->kernels()[0]);
  const std::vector<bool> waits = exec::WaitingLoops(kernel.function());
  return std::find(waits.begin(), waits.end(), true) != waits.end();
}

TEST(WaitingLoops, AreThoseThatOthersEnd) {
  for (const char* body : {
           "L: atom.global.cas.b32 %v, [%lock], 0, 1; setp.ne.u32 %p, %v, 0; @%p bra L;",
           "L: mov.u32 %r0, 1; atom.exch.b32 %v, [%lock], %r0; setp.eq.u32 %p, %v, 1; @%p bra L;",
           "L: ld.volatile.global.u32 %v, [%word]; setp.eq.u32 %p, %v, 0; @%p bra L;",
           "L: ld.global.u32 %v, [%word]; membar.gl; setp.lt.u32 %p, %v, %t; @%p bra L;",
           "L: atom.add.u32 %v, [%word], 0; setp.eq.u32 %p, %v, %t; @!%p bra L;",
           "L: ld.acquire.gpu.u32 %v, [%word]; setp.ne.u32 %p, %v, 0; @%p bra D; bra L; D:",
           // Either way through the loop writes what is read behind.
           "L: ld.volatile.u32 %v, [%word]; setp.eq.u32 %p, %v, 0; @%p bra M;"
           "  ld.volatile.u32 %r0, [%lock]; setp.eq.u32 %q, %r0, 0; @!%q bra D; M: bra L; D:",
       }) {
    EXPECT_TRUE(HasWaitingLoop(body)) << body;
  }
}

TEST(WaitingLoops, AreNotThoseThatGetOn) {
  for (const char* body : {
           // A count of rounds, and what the round before has read.
           "L: ld.volatile.u32 %v, [%word]; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 9; @%p bra L;",
           "L: mov.u32 %r0, %i; atom.cas.b32 %i, [%word], %r0, %t; setp.ne.u32 %p, %i, %r0;"
           " @%p bra L;",
           // Written in some lanes only, or on one way only.
           "L: ld.volatile.u32 %v, [%word]; @%q mov.u32 %i, %v; setp.eq.u32 %p, %i, 0; @%p bra L;",
           "L: ld.volatile.u32 %v, [%word]; setp.eq.u32 %p, %v, 7; @%p bra M; mov.u32 %i, %v;"
           " M: setp.eq.u32 %p, %i, 0; @%p bra L;",
           // Writes, counts, arrives, calls nobody.
           "L: ld.volatile.u32 %v, [%word]; st.u32 [%lock], %t; setp.eq.u32 %p, %v, 0; @%p bra L;",
           "L: atom.add.u32 %v, [%word], 1; setp.lt.u32 %p, %v, 9; @%p bra L;",
           "L: atom.add.u32 %v, [%word], %t; setp.lt.u32 %p, %v, 9; @%p bra L;",
           "L: ld.volatile.u32 %v, [%word]; bar.sync 0; setp.eq.u32 %p, %v, 0; @%p bra L;",
           // Nothing that others could write.
           "L: ld.param.u32 %v, [word]; setp.eq.u32 %p, %v, 0; @%p bra L;",
       }) {
    EXPECT_FALSE(HasWaitingLoop(body)) << body;
  }
}

class Waiting : public ::testing::Test {
 protected:
  Waiting() {
    // Much longer than a kernel here takes; with lanes that don't make way it takes longer.
    machine_.watchdog_ms = 5000;
    lock_ = machine_.Allocate(64);
    word_ = machine_.Allocate(4096);
  }
  void Run(const std::string& body, uint32_t blocks, uint32_t threads) {
    machine_.Load(WaitingKernel(body));
    const std::optional<Fault> fault = machine_.Run("waits", {blocks}, {threads}, lock_, word_);
    ASSERT_FALSE(fault.has_value()) << fault->ToString();
  }
  uint32_t Word(size_t index = 0) { return machine_.Download<uint32_t>(word_, index + 1)[index]; }

  Machine machine_;
  uint64_t lock_ = 0, word_ = 0;
};

constexpr char kCountOne[] =
    "ld.volatile.u32 %r1, [%word]; add.u32 %r1, %r1, 1; st.volatile.u32 [%word], %r1; membar.gl;";

TEST_F(Waiting, ContendedLockOfManyBlocks) {
  Run("L: atom.cas.b32 %v, [%lock], 0, 1; setp.ne.u32 %p, %v, 0; @%p bra L; membar.gl;" +
          std::string(kCountOne) + "atom.exch.b32 %v, [%lock], 0;",
      32, 128);
  EXPECT_EQ(Word(), 32u * 128);
}

TEST_F(Waiting, LockThatAPlainStoreOpens) {
  Run("L: atom.exch.b32 %v, [%lock], 1; setp.eq.u32 %p, %v, 1; @%p bra L; membar.gl;" +
          std::string(kCountOne) + "st.volatile.u32 [%lock], 0;",
      32, 128);
  EXPECT_EQ(Word(), 32u * 128);
}

// Each warp holds a number that another warp waits for, the last one's first.
TEST_F(Waiting, TicketsInAnyOrder) {
  Run("mov.u32 %r0, 511; sub.u32 %r0, %r0, %t;\n"
      "L: ld.volatile.u32 %v, [%lock]; setp.ne.u32 %p, %v, %r0; @%p bra L; membar.gl;" +
          std::string(kCountOne) + "add.u32 %v, %v, 1; st.volatile.u32 [%lock], %v;",
      1, 512);
  EXPECT_EQ(Word(), 512u);
}

// Lanes wait for one of their own warp, which has more to do than a turn.
TEST_F(Waiting, FlagOfALaneThatTakesLong) {
  Run("setp.ne.u32 %p, %t, 5; @%p bra L;\n"
      "W: add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 10000; @%q bra W;\n"
      "st.volatile.u32 [%lock], %i; bra D;\n"
      "L: ld.volatile.u32 %v, [%lock]; setp.eq.u32 %p, %v, 0; @%p bra L;\n"
      "D: atom.add.u32 %v, [%word], 1;",
      1, 32);
  EXPECT_EQ(Word(), 32u);
}

// Who has given the lock back waits where all meet, and the warp goes on as one.
TEST_F(Waiting, LanesMeetAgainBehindALock) {
  Run("setp.eq.u64 %q, %word, 0; @%q bra MEET;\n"
      "L: atom.cas.b32 %v, [%lock], 0, 1; setp.ne.u32 %p, %v, 0; @%p bra L; membar.gl;" +
          std::string(kCountOne) +
          "atom.exch.b32 %v, [%lock], 0;\n"
          "MEET: activemask.b32 %v; mad.wide.u32 %at, %t, 4, %word; st.u32 [%at+64], %v;",
      1, 32);
  EXPECT_EQ(Word(), 32u);
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(Word(16 + lane), ~0u) << lane;
}

}  // namespace
}  // namespace softgpu::testing
