#include "softgpu/driver/device_runtime.h"

#include <span>
#include <string>
#include <vector>

#include "softgpu/driver/fatbin.h"

namespace softgpu {
namespace {

constexpr std::string_view kArchiveMagic = "!<arch>\n";
constexpr std::string_view kMember = "cuda_device_runtime.o";
// Called by the vendor's device runtime alone, which PTX and machine code of it name.
constexpr std::string_view kSystemCall = "__cuda_syscall_CGS_sync";

}  // namespace

bool IsDeviceRuntimeUntrusted(std::string_view input) {
  if (input.starts_with(kArchiveMagic)) return input.find(kMember) != std::string_view::npos;
  std::vector<FatbinEntry> entries;
  std::string error, code;
  if (input.size() < kFatbinHeaderBytes || FatbinBytesUntrusted(input.data()) == 0 ||
      !ParseFatbinUntrusted(std::as_bytes(std::span(input)), &entries, &error) || entries.empty()) {
    return false;
  }
  return ExpandUntrusted(entries.front(), &code, &error) &&
         code.find(kSystemCall) != std::string::npos;
}

// The grid's workspace lies at the address in %envreg1 and 2, where nvcc's own code looks for it,
// and the barrier is its second word. Blocks add up to 2^31 in each round, so its top bit changes
// when the last one has come.
const char kDeviceRuntimePtx[] = R"(.version 6.0
.target sm_50
.address_size 64
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .pred %grid;
  .reg .b32 %r<4>;
  .reg .b64 %workspace, %result;
  ld.param.u32 %r1, [scope];
  mov.u32 %r2, %envreg2;
  mov.u32 %r3, %envreg1;
  mov.b64 %workspace, {%r2, %r3};
  setp.eq.u32 %grid, %r1, 1;
  selp.b64 %result, %workspace, 0, %grid;
  st.param.b64 [handle], %result;
  ret;
}

.visible .func (.param .b32 status) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %other, %later, %waiting, %none;
  .reg .b32 %x, %y, %z, %arrivals, %before, %now;
  .reg .b64 %barrier;
  ld.param.u64 %barrier, [handle];
  setp.eq.u64 %none, %barrier, 0;
  @%none bra REFUSED;
  barrier.sync 0;
  mov.u32 %x, %tid.x;
  mov.u32 %y, %tid.y;
  mov.u32 %z, %tid.z;
  or.b32 %x, %x, %y;
  or.b32 %x, %x, %z;
  setp.ne.u32 %other, %x, 0;
  @%other bra DONE;
  mov.u32 %x, %nctaid.x;
  mov.u32 %y, %nctaid.y;
  mov.u32 %z, %nctaid.z;
  mul.lo.u32 %x, %x, %y;
  mul.lo.u32 %x, %x, %z;
  sub.u32 %arrivals, 0x80000001, %x;
  mov.u32 %x, %ctaid.x;
  mov.u32 %y, %ctaid.y;
  mov.u32 %z, %ctaid.z;
  or.b32 %x, %x, %y;
  or.b32 %x, %x, %z;
  setp.ne.u32 %later, %x, 0;
  selp.u32 %arrivals, 1, %arrivals, %later;
  membar.gl;
  atom.add.u32 %before, [%barrier+4], %arrivals;
WAIT:
  ld.volatile.u32 %now, [%barrier+4];
  xor.b32 %now, %now, %before;
  setp.ge.s32 %waiting, %now, 0;
  @%waiting bra WAIT;
  membar.gl;
DONE:
  barrier.sync 0;
  st.param.b32 [status], 0;
  ret;
REFUSED:
  st.param.b32 [status], 1;
  ret;
}
)";

}  // namespace softgpu
