// Kernels that do what no kernel should: each ends with the fault that the manual names for it, at
// its line, or does nothing, and the process lives on.
#include <gtest/gtest.h>

#include "tests/softgpu/exec/machine.h"

#if !defined(__SANITIZE_THREAD__)  // what it keeps of a wild address is not there either

namespace softgpu::testing {
namespace {

constexpr CUresult kHarmless = CUDA_SUCCESS, kStray = CUDA_ERROR_ILLEGAL_ADDRESS,
                   kMisaligned = CUDA_ERROR_MISALIGNED_ADDRESS, kFailed = CUDA_ERROR_LAUNCH_FAILED,
                   kInstruction = CUDA_ERROR_ILLEGAL_INSTRUCTION,
                   kTimeout = CUDA_ERROR_LAUNCH_TIMEOUT;

struct Deed {
  CUresult code;
  const char* body;
};

// %l0 is the address of 64 bytes of memory, %l1 an address that has none; the body is line kLine.
const Deed kDeeds[] = {
    {kStray, "ld.global.v4.u32 {%r0,%r1,%r2,%r3}, [%l1+-16];"},
    {kStray, "ld.global.v4.u32 {%r0,%r1,%r2,%r3}, [%l1+0xfffffffffff0];"},
    {kStray, "mov.u64 %l1, -4; st.u32 [%l1], 1;"},
    {kStray, "mov.u64 %l1, -16; ld.global.v4.u32 {%r0,%r1,%r2,%r3}, [%l1];"},
    {kStray, "mov.u64 %l1, -16; ld.global.v4.u32 {%r0,%r1,%r2,%r3}, [%l1+16];"},
    {kStray, "mov.u64 %l1, -8; atom.add.u64 %l2, [%l1], 1;"},
    {kStray, "mov.u64 %l1, -16; st.shared.v4.u32 [%l1], {%r0,%r1,%r2,%r3};"},
    {kMisaligned, "st.shared.v4.u32 [box+56], {%r0,%r1,%r2,%r3};"},
    {kMisaligned, "st.shared.u32 [box+62], %r0;"},
    {kStray, "mov.u64 %l1, -4; st.local.u32 [%l1], %r0;"},
    {kStray, "st.local.v4.u32 [mine+16], {%r0,%r1,%r2,%r3};"},
    {kStray, "mov.u64 %l1, mine; cvta.local.u64 %l1, %l1; st.u32 [%l1+0x100000], %r0;"},
    {kStray, "mov.u64 %l1, box; cvta.shared.u64 %l1, %l1; st.u32 [%l1+0x100000], %r0;"},
    {kStray, "mov.u64 %l1, box; cvta.shared.u64 %l1, %l1; st.u32 [%l1+-4], %r0;"},
    {kMisaligned,
     "mov.u64 %l1, box; cvta.shared.u64 %l1, %l1; st.v4.u32 [%l1+56], {%r0,%r1,%r2,%r3};"},
    {kStray, "atom.shared.add.u32 %r0, [box+128], 1;"},
    {kMisaligned, "atom.shared.add.u32 %r0, [box+2], 1;"},
    {kStray, "atom.local.add.u32 %r0, [mine+64], 1;"},
    {kMisaligned, "red.shared.add.u64 [box+4], 1;"},
    {kStray, "mov.u64 %l1, 0; call %l1, (), proto;"},
    {kStray, "mov.u64 %l1, 12345; call %l1, (), proto;"},
    {kStray, "mov.u64 %l1, k; call %l1, (), proto;"},
    {kInstruction, "mov.u32 %r1, 7; brx.idx %r1, table;"},
    {kInstruction, "mov.u32 %r1, -1; brx.idx %r1, table;"},
    {kHarmless,
     "mov.u32 %r1, 0; div.s32 %r0, %r0, %r1; rem.s32 %r2, %r0, %r1; mov.u32 %r1, -1; mov.u32 %r0, "
     "0x80000000; div.s32 %r2, %r0, %r1; rem.s32 %r3, %r0, %r1;"},
    {kHarmless,
     "mov.u64 %l1, 0; div.s64 %l2, %l0, %l1; rem.u64 %l2, %l0, %l1; mov.u64 %l1, -1; mov.u64 %l2, "
     "0x8000000000000000; div.s64 %l3, %l2, %l1; rem.s64 %l3, %l2, %l1;"},
    {kStray, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0,%r1,%r2,%r3}, [%l0];"},
    {kMisaligned, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0,%r1,%r2,%r3}, [box+8];"},
    {kStray, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%l0], {%r0,%r1,%r2,%r3};"},
    {kStray, "st.bulk.weak.shared::cta [box], 1048576, 0;"},
    {kStray, "mov.u64 %l1, -8; st.bulk.weak.shared::cta [box], %l1, 0;"},
    {kStray,
     "mov.u32 %r1, 0xfffffff0; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
     "[box], [%l0], %r1, [box];"},
    {kStray, "cp.async.bulk.global.shared::cta.bulk_group [%l1], [box], 1024;"},
    {kMisaligned, "cp.async.cg.shared.global [box+60], [%l0], 16;"},
    {kStray, "cp.async.cg.shared.global [box+48], [%l1], 16;"},
    {kMisaligned, "cp.async.cg.shared.global [box+48], [%l0+4], 16;"},
    {kMisaligned, "mbarrier.init.shared.b64 [box+60], 1;"},
    {kStray, "mbarrier.init.shared.b64 [box+128], 1;"},
    {kStray, "mbarrier.arrive.shared.b64 %l1, [%l0];"},
    {kFailed, "mov.u64 %l1, 77; tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%l1, {%f0,%f1}];"},
    {kFailed, "mov.u64 %l1, 77; sust.b.2d.b32.trap [%l1, {%r0,%r1}], {%r0};"},
    {kFailed, "mov.u64 %l1, 0; txq.width.b32 %r0, [%l1];"},
    {kFailed, "alloca.u64 %l1, 0x7fffffffffffffff;"},
    {kFailed, "mov.u64 %l1, -16; alloca.u64 %l1, %l1;"},
    {kHarmless,
     "mov.u64 %l1, -16; stackrestore.u64 %l1; alloca.u64 %l1, 16; st.local.u32 [%l1], 1;"},
    {kInstruction, "bar.sync 99;"},
    {kFailed, "bar.sync 0, 4096;"},
    {kFailed, "brkpt;"},
    {kStray, "st.param.u32 [%l1], %r0;"},
    {kStray, "mov.u64 %l1, -4; ld.const.u32 %r0, [%l1];"},
    {kMisaligned, "ld.const.v4.u32 {%r0,%r1,%r2,%r3}, [konst+8];"},
    {kStray, "ld.param.v4.u32 {%r0,%r1,%r2,%r3}, [p+8];"},
    {kMisaligned, "mov.u64 %l1, -1; ld.param.u32 %r0, [%l1];"},
    {kStray,
     "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0,%r1,%r2,%r3,%r0,%r1,%r2,%r3}, [%l0], "
     "0x7fffffff;"},
    {kStray,
     "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3,%r0,%r1,%r2,%r3}, [box], "
     "-16;"},
    {kStray,
     "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], 8; st.param.b64 [b], 16; "
     "call (c), vprintf, (a, b); }"},
    {kStray,
     "{ .param .b64 a; .param .b64 b; .param .b32 c; mov.u64 %l1, fmt; cvta.global.u64 %l1, %l1; "
     "st.param.b64 [a], %l1; st.param.b64 [b], 16; call (c), vprintf, (a, b); }"},
    {kStray,
     "{ .param .b64 a; .param .b64 b; .param .b32 c; mov.u64 %l1, fmt; cvta.global.u64 %l1, %l1; "
     "st.param.b64 [a], %l1; mov.u64 %l2, mine; cvta.local.u64 %l2, %l2; st.local.u64 [mine], 99; "
     "st.param.b64 [b], %l2; call (c), vprintf, (a, b); }"},
    {kStray,
     "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 "
     "[a], 8; st.param.b64 [b], 16; st.param.b32 [c], 3; st.param.b64 [d], 0; st.param.b64 [e], 0; "
     "call __assertfail, (a, b, c, d, e); }"},
    {kStray,
     "{ .param .b64 a; .param .b32 b; st.param.b64 [a], 77; st.param.b32 [b], 1; "
     "call cudaGraphSetConditional, (a, b); }"},
    {kFailed, "call recurse, ();"},
    {kTimeout, "LOOP: bra LOOP;"},
    {kTimeout, "LOOP: setp.eq.u32 %p, %r1, 5; @%p bra LOOP; add.u32 %r1, %r1, 1; bra LOOP;"},
};
constexpr int kLine = 22;

std::string WithBody(const char* body) {
  return std::string(R"(.version 8.7
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c,
 .param .b64 d, .param .b64 e); .extern .func cudaGraphSetConditional(.param .b64 a, .param .b32 b);
.const .align 16 .b8 konst[16];
.global .align 1 .b8 fmt[3] = {37, 115, 0};
.func recurse()
{ .local .b8 big[4096]; .reg .b64 %l;
  mov.u64 %l, big; st.local.u32 [%l], 1;
  call recurse, ();
  ret; }
.visible .entry k(.param .align 16 .b64 p, .param .u64 q)
{ .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %l<4>; .reg .f32 %f<4>;
  .shared .align 16 .b8 box[64]; .local .align 16 .b8 mine[16];
  table: .branchtargets A, B;
  proto: .callprototype _ ();
  ld.param.u64 %l0, [p];
  ld.param.u64 %l1, [q];
  mov.u32 %r0, %tid.x;
)") + body +
         "\nA: B: ret; }\n";
}

TEST(Hostile, FaultsAreNamedAndContained) {
  for (const Deed& deed : kDeeds) {
    SCOPED_TRACE(deed.body);
    Machine machine(1u << 20);
    if (deed.code == kTimeout) machine.watchdog_ms = 50;
    machine.Load(WithBody(deed.body));
    const uint64_t good = machine.Allocate(64);
    const std::optional<Fault> fault = machine.Run("k", {2}, {64}, good, machine.Unmapped());
    ASSERT_EQ(fault.has_value() ? fault->code : CUDA_SUCCESS, deed.code);
    if (!fault.has_value()) continue;
    EXPECT_EQ(fault->kernel, "k");
    const bool recursion = fault->line == 12 && std::string_view(deed.body).starts_with("call rec");
    EXPECT_TRUE(fault->line == kLine || recursion) << fault->ToString();
    EXPECT_EQ(fault->what.find(" 0 bytes"), std::string::npos) << fault->ToString();
  }
}

}  // namespace
}  // namespace softgpu::testing

#endif
