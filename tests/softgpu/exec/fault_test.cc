// Kernels that stray: each fault has its code, and names thread and line; the process lives on.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

std::string StoreKernel(const std::string& store) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param "
         ".u32 t)\n"
         "{ .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %l<4>; .shared .b8 box[64];\n"
         "ld.param.u64 %l0, [p];\nld.param.u32 %r0, [t];\nmov.u32 %r1, %tid.x;\n"
         "setp.ne.u32 %p, %r0, %r1;\n@%p bra OUT;\n" +
         store + "\nOUT: ret; }\n";  // the store is line 11
}

class Faults : public ::testing::Test {
 protected:
  Fault MustFault(const std::string& store, uint64_t address, uint32_t thread = 37) {
    machine.Load(StoreKernel(store));
    const std::optional<Fault> fault = machine.Run("k", {2}, {64}, address, thread);
    EXPECT_TRUE(fault.has_value()) << store;
    return fault.value_or(Fault{});
  }
  Machine machine;
};

TEST_F(Faults, UnmappedPage) {
  const Fault fault = MustFault("st.global.u32 [%l0], 1;", machine.Unmapped());
  EXPECT_EQ(fault.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(fault.thread.x, 37u);
  EXPECT_EQ(fault.line, 11);
  EXPECT_EQ(fault.kernel, "k");
  EXPECT_EQ(fault.address, machine.Unmapped());
}

TEST_F(Faults, UnmappedPageUnderAFullMask) {
  machine.Load(
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n"
      "{ .reg .b64 %l<2>; .reg .b32 %r;\nld.param.u64 %l0, [p];\nld.global.u32 %r, [%l0+8];\nret; "
      "}");
  const std::optional<Fault> fault = machine.Run("k", {1}, {32}, machine.Unmapped());
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->line, 7);
  EXPECT_EQ(fault->code, CUDA_ERROR_ILLEGAL_ADDRESS);
  // And the next launch works.
  const uint64_t good = machine.Allocate(64);
  EXPECT_FALSE(machine.Run("k", {1}, {32}, good).has_value());
}

TEST_F(Faults, NullAndHostAddresses) {
  EXPECT_EQ(MustFault("st.global.u32 [%l0], 1;", 0).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  static uint32_t host = 0;
  EXPECT_EQ(MustFault("st.u32 [%l0], 1;", reinterpret_cast<uint64_t>(&host) & ~3ull).code,
            CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(host, 0u);
  EXPECT_EQ(MustFault("red.global.add.u32 [%l0], 1;", 8).code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

#if !defined(__SANITIZE_THREAD__)  // under it, a second access to a missing page ends the process
// Each thread has its own cache line; the last one's ends with the memory. Loads of neighbouring
// words may be done as one.
TEST_F(Faults, SomeLaneOfScatteredAccesses) {
  const uint64_t end = machine.Unmapped() - 4096;
  const auto run = [&](const std::string& accesses) {
    machine.Load(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n"
        "{ .reg .b32 %r<8>; .reg .b64 %l<2>;\nld.param.u64 %l0, [p];\nmov.u32 %r0, %tid.x;\n"
        "mad.wide.u32 %l0, %r0, 64, %l0;\n" +
        accesses + "\nst.global.u32 [%l0+-64], %r1;\nret; }");
    return machine.Run("k", {1}, {32}, end - 4 - 31 * 64);
  };
  const std::string sum = "add.u32 %r1, %r1, %r2;\nadd.u32 %r1, %r1, %r3;\n";
  EXPECT_FALSE(run("ld.global.u32 %r1, [%l0+-8];\nld.global.u32 %r2, [%l0+-4];\n"
                   "ld.global.u32 %r3, [%l0];\n" +
                   sum)
                   .has_value());
  for (const std::string load : {"ld.global.u32", "ld.global.u8", "ld.global.u16"}) {
    const Fault fault =
        run(load + " %r1, [%l0+-4];\n" + load + " %r2, [%l0];\n" + load + " %r3, [%l0+4];\n" + sum)
            .value_or(Fault{});
    EXPECT_EQ(fault.code, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(fault.line, 11);
    EXPECT_EQ(fault.thread.x, 31u);
    EXPECT_EQ(fault.address, end);
  }
  for (const std::string store : {"st.global.u32", "st.global.u8"}) {
    const Fault fault = run(store + " [%l0+-4], %r0;\n" + store + " [%l0], %r0;\n" + store +
                            " [%l0+4], %r0;\nmov.u32 %r1, %r0;")
                            .value_or(Fault{});
    EXPECT_EQ(fault.code, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(fault.line, 11);
    EXPECT_EQ(fault.thread.x, 31u);
    EXPECT_EQ(fault.address, end);
  }
}
#endif

TEST_F(Faults, Misaligned) {
  const uint64_t good = machine.Allocate(64);
  EXPECT_EQ(MustFault("st.global.u32 [%l0+2], 1;", good).code, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(MustFault("st.global.v4.u32 [%l0+8], {%r0, %r0, %r0, %r0};", good).code,
            CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(MustFault("atom.global.cas.b64 %l1, [%l0+4], %l0, %l0;", good).code,
            CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_F(Faults, SharedLocalAndParamBounds) {
  EXPECT_EQ(MustFault("st.shared.u32 [box+128], 1;", 0).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(MustFault("ld.shared.u32 %r0, [%l0];", 1ull << 40).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(MustFault("st.local.u32 [%l0], 1;", 4096).code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(MustFault("ld.param.u32 %r0, [%l0];", 64).code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Faults, TrapAndBarriersThatNeverOpen) {
  EXPECT_EQ(MustFault("trap;", 0).code, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(MustFault("bar.sync 1, 64;", 0).code, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(MustFault("bar.sync %r1;", 0).code, CUDA_ERROR_ILLEGAL_INSTRUCTION);
}

int outside = 0;
void CountOutside(int) {
  ++outside;
  signal(SIGSEGV, SIG_DFL);
}

#if !defined(__SANITIZE_THREAD__)  // it puts raised signals off
TEST_F(Faults, SignalsThatAreNotOursGoToTheHost) {
  signal(SIGSEGV, CountOutside);
  MustFault("st.global.u32 [%l0], 1;", machine.Unmapped());  // installs our handler over the host's
  EXPECT_EQ(outside, 0);
  raise(SIGSEGV);
  EXPECT_EQ(outside, 1);
}
#endif

}  // namespace
}  // namespace softgpu::testing
