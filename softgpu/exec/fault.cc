#include "softgpu/exec/fault.h"

#include <signal.h>

#include <cstdio>
#include <cstring>

#include "base/mutex.h"
#include "ipc/calls/limits.h"
#include "softgpu/exec/handlers.h"

namespace softgpu {

std::string Fault::ToString() const {
  char place[160];
  std::snprintf(place, sizeof place,
                ", block (%u,%u,%u), thread (%u,%u,%u), PTX line %d: ", block.x, block.y, block.z,
                thread.x, thread.y, thread.z, line);
  const std::string from = source.empty() ? "" : "(" + source + ") ";
  return "kernel " + ptx::ReadableName(kernel) + place + from + what;
}

namespace exec {
namespace {

// Initial-exec: reading it in a signal handler must not allocate.
[[gnu::tls_model("initial-exec")]] thread_local FaultTrap* current_trap = nullptr;

// A handler that we call may call us back: it remembers us as its predecessor.
[[gnu::tls_model("initial-exec")]] thread_local bool chaining = false;

// Installed handlers read these in a signal, without the mutex of those who install.
struct sigaction previous_segv, previous_bus;
base::Mutex install_mutex;

void Chain(int number, siginfo_t* info, void* context) {
  const struct sigaction& previous = number == SIGSEGV ? previous_segv : previous_bus;
  const bool plain_default = (previous.sa_flags & SA_SIGINFO) == 0 &&
                             (previous.sa_handler == SIG_DFL || previous.sa_handler == nullptr);
  if (chaining || plain_default) {
    // Returning runs the faulting instruction again, now with the default action.
    struct sigaction plain = {};
    plain.sa_handler = SIG_DFL;
    sigaction(number, &plain, nullptr);
    // A signal that kill() sent will not come again by itself.
    if (info->si_code <= 0) raise(number);
    return;
  }
  chaining = true;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  }
  chaining = false;
}

void Handle(int number, siginfo_t* info, void* context) {
  FaultTrap* trap = current_trap;
  const uint64_t address = reinterpret_cast<uint64_t>(info->si_addr);
  const bool traps = trap != nullptr && (trap->warp != nullptr || trap->plain);
  const bool ours =
      traps && info->si_code > 0 &&
      address - ipc::limits::kWindowBase < ipc::limits::kWindowEnd - ipc::limits::kWindowBase;
  if (!ours) return Chain(number, info, context);
  trap->address = address;
  siglongjmp(trap->target, 1);
}

void InstallOne(int number, struct sigaction* previous) {
  struct sigaction now = {};
  sigaction(number, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == Handle) return;
  *previous = now;
  struct sigaction ours = {};
  ours.sa_sigaction = Handle;
  // NODEFER: the handler leaves by a jump that restores no mask.
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(number, &ours, nullptr);
}

// The lane whose access touched `address`; `bytes` and addresses as the instruction has them.
int FindLane(const Warp* w, uint64_t address) {
  const Inst* ip = w->current;
  if (ip == nullptr) return -1;
  MemoryShape shape;
  std::memcpy(&shape, &ip->aux, sizeof shape);
  const uint64_t bytes = std::max<uint64_t>(uint64_t{shape.element_bytes} * shape.vector, 1);
  const auto address_of = [&](int lane) -> uint64_t {
    if (w->access_form == 1) return w->access[0] + lane * w->access_stride;
    if (w->access_form == 2) return w->access[lane];
    return ip->imm + (shape.narrow_address
                          ? reinterpret_cast<const uint32_t*>(w->regs + ip->a)[lane]
                          : reinterpret_cast<const uint64_t*>(w->regs + ip->a)[lane]);
  };
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    if (address - address_of(lane) < bytes) return lane;
  }
  // Pages are 4 KiB: the kernel may report only the page for accesses that cross into it.
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    if (!shape.narrow_address && (address_of(lane) ^ address) < 4096) return lane;
  }
  return -1;
}

}  // namespace

void InstallFaultHandler() {
  base::MutexLock lock(&install_mutex);
  InstallOne(SIGSEGV, &previous_segv);
  InstallOne(SIGBUS, &previous_bus);
}

void PushTrap(FaultTrap* trap) {
  trap->outer = current_trap;
  current_trap = trap;
}

void PopTrap() { current_trap = current_trap->outer; }

FaultTrap* CurrentTrap() { return current_trap; }

void LaunchState::Report(Fault found) {
  base::MutexLock lock(&mutex);
  if (!fault.has_value()) fault = std::move(found);
  stop.store(true, std::memory_order_relaxed);
}

const Inst* RaiseFault(const Inst* ip, Warp* w, int lane, CUresult code, std::string what,
                       uint64_t address) {
  Fault fault;
  fault.code = code;
  fault.what = std::move(what);
  fault.kernel = w->block->state->code->kernel->name();
  fault.block = w->block->id;
  if (lane < 0 && w->mask != 0) lane = __builtin_ctz(w->mask);
  if (lane >= 0) fault.thread = {w->tid[0][lane], w->tid[1][lane], w->tid[2][lane]};
  fault.line = ip == nullptr ? 0 : ip->line;
  fault.source = w->block->state->code->kernel->SourceOf(fault.line);
  fault.address = address;
  w->block->state->Report(std::move(fault));
  w->stop = Stop::kFault;
  return nullptr;
}

void ReportPageFault(const FaultTrap& trap) {
  Warp* w = trap.warp;
  char what[96];
  MemoryShape shape = {};
  if (w->current != nullptr) std::memcpy(&shape, &w->current->aux, sizeof shape);
  const bool resolved =
      w->resolved.by == w->current && trap.address - w->resolved.address < w->resolved.bytes;
  const int lane = resolved ? w->resolved.lane : FindLane(w, trap.address);
  const bool is_store = resolved ? w->resolved.is_store : shape.is_store != 0;
  const uint32_t bytes =
      resolved ? w->resolved.bytes : uint32_t{shape.element_bytes} * shape.vector;
  std::snprintf(what, sizeof what, "%s of %u bytes %s 0x%llx, which is not mapped",
                is_store ? "store" : "load", bytes, is_store ? "to" : "from",
                static_cast<unsigned long long>(trap.address));
  const Memory* const memory = w->block->state->launch->memory;
  const std::string near = memory == nullptr ? "" : memory->Near(trap.address);
  RaiseFault(w->current, w, lane, CUDA_ERROR_ILLEGAL_ADDRESS, what + near, trap.address);
}

}  // namespace exec
}  // namespace softgpu
