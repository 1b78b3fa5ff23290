// The checked translation's instructions: look at an access or a barrier before it happens, and put
// what is wrong into words.
#include <algorithm>
#include <cstring>

#include "base/mutex.h"
#include "ipc/calls/limits.h"
#include "softgpu/exec/check.h"
#include "softgpu/exec/device_heap.h"
#include "softgpu/exec/memory_access.h"

namespace softgpu::exec {
namespace {

using Kind = Finding::Kind;
using ptx::Space;

std::string Number(const char* format, uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, format, static_cast<unsigned long long>(value));
  return text;
}

std::string Thread(const Warp* w, uint32_t thread) {
  const Dim3& shape = w->block->state->launch->block;
  return Number("thread (%llu,", thread % shape.x) + Number("%llu,", thread / shape.x % shape.y) +
         Number("%llu)", thread / shape.x / shape.y);
}

std::string Bytes(uint32_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

const ptx::KernelImpl& KernelOf(const Warp* w) { return *w->block->state->code->kernel; }

// One finding per place, or pair of places, in a launch: a loop, the next lane or the other order
// says nothing new.
void Report(Warp* w, Kind kind, int line, int other_line, const std::string& text) {
  LaunchState& state = *w->block->state;
  const std::tuple<Kind, int, int> key(kind, std::min(line, other_line),
                                       std::max(line, other_line));
  {
    base::MutexLock lock(&state.mutex);
    if (!state.findings.insert(key).second) return;
  }
  const Dim3& id = w->block->id;
  Finding finding{kind, KernelOf(w).name(), line, other_line, ""};
  finding.text = text + "\n    in kernel " + ptx::ReadableName(finding.kernel) + ", block (" +
                 std::to_string(id.x) + "," + std::to_string(id.y) + "," + std::to_string(id.z) +
                 ")";
  state.launch->report(finding);
}

// Where an access of one lane goes.
struct Target {
  Space space = Space::kGlobal;
  uint64_t address = 0;           // in its space
  const std::byte* at = nullptr;  // null: the access itself will fault
};

Target TargetOf(const Inst* ip, const Warp* w, const MemoryShape& shape, uint32_t lane) {
  const uint64_t base = shape.narrow_address
                            ? reinterpret_cast<const uint32_t*>(w->regs + ip->a)[lane]
                            : reinterpret_cast<const uint64_t*>(w->regs + ip->a)[lane];
  const uint64_t bytes = uint64_t{shape.element_bytes} * shape.vector;
  Target target{static_cast<Space>(shape.space), base + ip->imm, nullptr};
  const auto inside = [&](uint64_t size) {
    return target.address < size && size - target.address >= bytes;
  };
  if (target.space == Space::kGeneric) {
    target.space = Space::kGlobal;
    for (const auto& [window, space] : {std::pair{ptx::kSharedWindow, Space::kShared},
                                        std::pair{ptx::kLocalWindow, Space::kLocal}}) {
      if (target.address - window >= ptx::kWindowBytes) continue;
      target.address -= window;
      target.space = space;
      break;
    }
  }
  if ((target.address & (bytes - 1)) != 0) return target;
  if (target.space == Space::kShared) {
    if (inside(w->shared_bytes)) target.at = w->shared + target.address;
  } else if (target.space == Space::kLocal) {
    if (inside(w->local_stride)) {
      target.at = w->local + size_t{lane} * w->local_stride + target.address;
    }
  } else if (target.space == Space::kGlobal) {
    const bool in_window = target.address - ipc::limits::kWindowBase <
                           ipc::limits::kWindowEnd - ipc::limits::kWindowBase - bytes;
    if (in_window) target.at = reinterpret_cast<const std::byte*>(target.address);
  }
  return target;
}

std::string NameOf(const Warp* w, const Target& target) {
  switch (target.space) {
    case Space::kShared:
      return "shared memory at " + KernelOf(w).SharedName(target.address);
    case Space::kLocal:
      return "local memory at " + Number("0x%llx", target.address);
    default:
      return "global memory at " + Number("0x%llx", target.address);
  }
}

void ReportRace(const Inst* ip, Warp* w, const Target& target, uint32_t thread, bool writes,
                const SharedShadow::Access& earlier, bool earlier_wrote) {
  const ptx::KernelImpl& kernel = KernelOf(w);
  const bool same_warp = earlier.thread / kLanes == thread / kLanes;
  Report(w, Kind::kRace, ip->line, earlier.line,
         "race in " + NameOf(w, target) + "\n    " + Thread(w, thread) +
             (writes ? " writes it at " : " reads it at ") + PlaceInSource(kernel, ip->line) +
             "\n    " + Thread(w, earlier.thread) +
             (earlier_wrote ? " has written it at " : " has read it at ") +
             PlaceInSource(kernel, earlier.line) +
             (same_warp ? "\n    no __syncwarp() of their warp" : "\n    no barrier") +
             " orders the two");
}

// Whether all bytes that `lane` stores are what `at` holds, or what `other` lane stores just now.
bool StoresSame(const Inst* ip, const Warp* w, const MemoryShape& shape, uint32_t lane,
                const std::byte* at, int other) {
  const uint32_t registers[4] = {ip->d, ip->b, ip->c, ip->e};
  for (uint32_t k = 0; k < shape.vector; ++k) {
    const std::byte* mine = w->regs + registers[k] + lane * shape.register_bytes;
    const std::byte* theirs = other < 0 ? at + k * shape.element_bytes
                                        : w->regs + registers[k] + other * shape.register_bytes;
    if (std::memcmp(mine, theirs, shape.element_bytes) != 0) return false;
  }
  return true;
}

void CheckRaces(const Inst* ip, Warp* w, const MemoryShape& shape, const Target& target,
                uint32_t lane, bool atomic) {
  SharedShadow& shadow = *w->block->shadow;
  const uint32_t thread = w->index * kLanes + lane;
  const uint32_t bytes = uint32_t{shape.element_bytes} * shape.vector;
  const bool same = shape.is_store && !atomic && StoresSame(ip, w, shape, lane, target.at, -1);
  for (uint32_t k = 0; k < bytes; ++k) {
    const std::optional<SharedShadow::Conflict> conflict =
        shape.is_store ? shadow.Write(thread, target.address + k, ip->line, atomic, same)
                       : shadow.Read(thread, target.address + k, ip->line, atomic);
    if (!conflict.has_value()) continue;
    const SharedShadow::Access& earlier = conflict->earlier;
    // Lanes that store the same value at once do no harm.
    const bool together = conflict->wrote && earlier.thread / kLanes == w->index &&
                          earlier.line == ip->line && shape.is_store && !atomic;
    if (together && StoresSame(ip, w, shape, lane, target.at, earlier.thread % kLanes)) continue;
    return ReportRace(ip, w, target, thread, shape.is_store, earlier, conflict->wrote);
  }
}

// Global memory that is mapped and that the program has not allocated. `known`: the allocation that
// was found last.
bool IsOutOfBounds(const Inst* ip, Warp* w, const MemoryShape& shape, const Target& target,
                   uint32_t lane, Memory::Range* known) {
  const Memory* const memory = w->block->state->launch->memory;
  const DeviceHeap* const heap = w->block->state->launch->objects.heap;
  const bool of_heap = heap != nullptr && heap->Contains(target.address);
  const uint32_t bytes = uint32_t{shape.element_bytes} * shape.vector;
  if ((memory == nullptr && !of_heap) || target.space != Space::kGlobal) return false;
  const auto inside = [&] {
    return target.address >= known->begin && target.address + bytes <= known->end;
  };
  if (inside()) return false;
  *known = of_heap ? heap->BlockAt(target.address) : memory->AllocationAt(target.address);
  if (inside()) return false;
  Report(w, Kind::kBounds, ip->line, 0,
         "out of bounds in " + NameOf(w, target) +
             (of_heap ? ", in no block of malloc" : memory->Near(target.address)) + "\n    " +
             Thread(w, w->index * kLanes + lane) + (shape.is_store ? " writes " : " reads ") +
             Bytes(bytes) + " there at " + PlaceInSource(KernelOf(w), ip->line));
  return true;
}

const Inst* Check(const Inst* ip, Warp* w, bool atomic) {
  MemoryShape shape;
  std::memcpy(&shape, &ip->aux, sizeof shape);
  const uint32_t bytes = uint32_t{shape.element_bytes} * shape.vector;
  w->current = ip;
  Memory::Range known;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const Target target = TargetOf(ip, w, shape, lane);
    if (target.at == nullptr || IsOutOfBounds(ip, w, shape, target, lane, &known)) continue;
    if (target.space == Space::kShared) CheckRaces(ip, w, shape, target, lane, atomic);
    if (shape.is_store || !Poisoned(target.at, target.address, bytes)) continue;
    Report(w, Kind::kUninitialised, ip->line, 0,
           "uninitialised " + NameOf(w, target) + "\n    " + Thread(w, w->index * kLanes + lane) +
               " reads " + Bytes(bytes) + " of it at " + PlaceInSource(KernelOf(w), ip->line) +
               "\n    nothing has been written there");
  }
  return ip + 1;
}

}  // namespace

const Inst* CheckAccess(const Inst* ip, Warp* w) { return Check(ip, w, false); }
const Inst* CheckAtomic(const Inst* ip, Warp* w) { return Check(ip, w, true); }

// bar.sync is for whole warps: lanes that took another way make it undefined.
const Inst* CheckBlockBarrier(const Inst* ip, Warp* w) {
  const uint32_t missing = w->live & ~w->mask;
  if (missing != 0) {
    const uint32_t here = w->index * kLanes + __builtin_ctz(w->mask);
    const uint32_t elsewhere = w->index * kLanes + __builtin_ctz(missing);
    Report(w, Kind::kDivergence, ip->line, 0,
           "barrier in divergent code\n    " + Thread(w, here) + " waits at the barrier at " +
               PlaceInSource(KernelOf(w), ip->line) + "\n    " + Thread(w, elsewhere) +
               " of its warp has taken another way");
  }
  return ip + 1;
}

const Inst* CheckWarpMask(const Inst* ip, Warp* w) {
  const uint32_t lane = __builtin_ctz(w->mask);
  const uint32_t members = reinterpret_cast<const uint32_t*>(w->regs + ip->b)[lane];
  const uint32_t strangers = w->mask & ~members;
  const uint32_t gone = members & w->launched & ~w->live;
  if (strangers != 0 || gone != 0) {
    const uint32_t thread = w->index * kLanes + __builtin_ctz(strangers != 0 ? strangers : gone);
    Report(w, Kind::kDivergence, ip->line, 0,
           "wrong mask of a warp's threads\n    at " + PlaceInSource(KernelOf(w), ip->line) +
               "\n    " + Thread(w, thread) +
               (strangers != 0 ? " takes part and is not in the mask "
                               : " is in the mask and has ended: ") +
               Number("0x%08llx", members));
  }
  return ip + 1;
}

const Inst* NoteWarpBarrier(const Inst* ip, Warp* w) {
  w->block->shadow->WarpBarrier(w->index);
  return ip + 1;
}

std::string PlaceInSource(const ptx::KernelImpl& kernel, int line) {
  const std::string ptx_line = "PTX line " + std::to_string(line);
  const std::string source = kernel.SourceOf(line);
  return source.empty() ? ptx_line : source + " (" + ptx_line + ")";
}

}  // namespace softgpu::exec
