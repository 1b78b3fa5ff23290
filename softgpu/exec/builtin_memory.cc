// malloc, free, memcpy and memset.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "softgpu/exec/builtins.h"
#include "softgpu/exec/device_heap.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/exec/memory_access.h"

namespace softgpu::exec {
namespace {

constexpr uint64_t kWord = 8;

// Where `bytes` of a lane's memory lie; null after a fault.
std::byte* Resolved(const Inst* ip, Warp* w, uint32_t lane, uint64_t address, uint64_t bytes,
                    bool is_store) {
  return Resolve(w, ip, lane, address, static_cast<uint32_t>(bytes),
                 static_cast<uint8_t>(ptx::Space::kGeneric), is_store);
}

// How much to do at once where all of `addresses` are at the same place in a word: their `or`.
uint64_t Step(uint64_t addresses, uint64_t left) {
  return addresses % kWord == 0 && left >= kWord ? kWord : 1;
}

}  // namespace

bool CallMalloc(const Inst*, Warp* w, const CallPlan& plan) {
  const LaunchState& state = *w->block->state;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t bytes = Argument(w, lane, plan, 0);
    DeviceHeap* const heap = state.launch->objects.heap;
    const uint64_t address = heap == nullptr ? 0 : heap->Allocate(bytes);
    if (address != 0 && state.checked) MarkUninitialised(address, bytes);
    SetResult(w, lane, plan, address);
  }
  return true;
}

bool CallFree(const Inst* ip, Warp* w, const CallPlan& plan) {
  DeviceHeap* const heap = w->block->state->launch->objects.heap;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t address = Argument(w, lane, plan, 0);
    if (address == 0 || (heap != nullptr && heap->Free(address))) continue;
    char text[128];
    std::snprintf(text, sizeof text,
                  "free of 0x%llx, where no block of malloc begins that is not freed yet",
                  static_cast<unsigned long long>(address));
    RaiseFault(ip, w, static_cast<int>(lane), CUDA_ERROR_ILLEGAL_ADDRESS, text, address);
    return false;
  }
  return true;
}

bool CallMemcpy(const Inst* ip, Warp* w, const CallPlan& plan) {
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t to = Argument(w, lane, plan, 0), from = Argument(w, lane, plan, 1);
    const uint64_t bytes = Argument(w, lane, plan, 2);
    for (uint64_t at = 0, step = 0; at < bytes; at += step) {
      step = Step((to + at) | (from + at), bytes - at);
      const std::byte* const source = Resolved(ip, w, lane, from + at, step, false);
      if (source == nullptr) return false;
      std::byte piece[kWord];
      std::memcpy(piece, source, step);  // a page fault names the address that was resolved last
      std::byte* const target = Resolved(ip, w, lane, to + at, step, true);
      if (target == nullptr) return false;
      std::memcpy(target, piece, step);
    }
    SetResult(w, lane, plan, to);
  }
  return true;
}

bool CallMemset(const Inst* ip, Warp* w, const CallPlan& plan) {
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t to = Argument(w, lane, plan, 0), bytes = Argument(w, lane, plan, 2);
    const int value = static_cast<uint8_t>(Argument(w, lane, plan, 1));
    for (uint64_t at = 0, step = 0; at < bytes; at += step) {
      step = Step(to + at, bytes - at);
      std::byte* const target = Resolved(ip, w, lane, to + at, step, true);
      if (target == nullptr) return false;
      std::memset(target, value, step);
    }
    SetResult(w, lane, plan, to);
  }
  return true;
}

}  // namespace softgpu::exec
