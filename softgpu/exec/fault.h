// Faults that the processor notices: a page without memory inside the window. The handler acts only
// for threads that execute a kernel, or touch memory as a copy does, and for addresses in the
// window; for all else it calls what was there. Thread safety: all functions may be called from any
// thread.
#pragma once

#include <csetjmp>
#include <optional>

#include "softgpu/exec/block.h"

namespace softgpu::exec {

// While one of these lives, SIGSEGV and SIGBUS inside the window jump to `target` on this thread.
struct FaultTrap {
  sigjmp_buf target;
  Warp* warp = nullptr;  // the one that runs; set before its code
  bool plain = false;    // no kernel: plain code touches memory
  uint64_t address = 0;  // what the signal said
  FaultTrap* outer = nullptr;
};

// 1: sigsetjmp saves the signal mask, and the handler's jump restores it. That costs a system call
// and is needless, as the handler blocks nothing. ThreadSanitizer blocks every signal around the
// handler, whatever was asked for: there the next fault of the thread would end the process.
#if defined(__SANITIZE_THREAD__)
inline constexpr int kSaveSignalMask = 1;
#else
inline constexpr int kSaveSignalMask = 0;
#endif

// Sees to it that the handler is in place: programs install their own at any time.
void InstallFaultHandler();
// The running thread's innermost trap.
void PushTrap(FaultTrap* trap);
void PopTrap();
FaultTrap* CurrentTrap();
// After the jump: names kernel, block, thread and line.
void ReportPageFault(const FaultTrap& trap);

// Calls `access`, which touches memory: copies, fills, single words. Returns the first address in
// the window that had no memory; then `access` was left where it was. REQUIRES: InstallFaultHandler
// was called before; nothing with a destructor lives in `access`, and it holds no lock.
template <class Access>
std::optional<uint64_t> FindPageFault(const Access& access) {
  FaultTrap trap;
  trap.plain = true;
  PushTrap(&trap);
  const bool faulted = sigsetjmp(trap.target, kSaveSignalMask) != 0;
  if (!faulted) access();
  PopTrap();
  return faulted ? std::optional<uint64_t>(trap.address) : std::nullopt;
}

}  // namespace softgpu::exec
