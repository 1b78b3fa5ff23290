// Faults that the processor notices: a page without memory inside the window. The handler acts only
// for threads that execute a kernel and for addresses in the window; for all else it calls what was
// there. Thread safety: all functions may be called from any thread.
#pragma once

#include <csetjmp>

#include "softgpu/exec/block.h"

namespace softgpu::exec {

// While one of these lives, SIGSEGV and SIGBUS inside the window jump to `target` on this thread.
struct FaultTrap {
  sigjmp_buf target;
  Warp* warp = nullptr;  // the one that runs; set before its code
  uint64_t address = 0;  // what the signal said
  FaultTrap* outer = nullptr;
};

// Sees to it that the handler is in place: programs install their own at any time.
void InstallFaultHandler();
// The running thread's innermost trap.
void PushTrap(FaultTrap* trap);
void PopTrap();
FaultTrap* CurrentTrap();
// After the jump: names kernel, block, thread and line.
void ReportPageFault(const FaultTrap& trap);

}  // namespace softgpu::exec
