#include "shim/results.h"

#include <cstring>

#include "base/mutex.h"
#include "shim/lock_order.h"
#include "shim/memory.h"
#include "shim/sync.h"

namespace shim {
namespace {

constexpr size_t kResultBytes = 64;
constexpr uint64_t kSlots = 1024;  // results waited for at once, by all threads

// One thread makes the slots.
constinit base::Mutex slots_mutex ACQUIRED_BEFORE(lock_order::kSending);
std::atomic<uint64_t> slots_base{0};
std::atomic<uint64_t> last_slot{0};

}  // namespace

HostResults& HostResults::OfThisThread() {
  thread_local HostResults results;
  return results;
}

CUresult HostResults::Prepare(const Context& context, uint64_t context_value) {
  if (slots_base.load(std::memory_order_acquire) != 0) return CUDA_SUCCESS;
  const base::MutexLock lock(&slots_mutex);
  if (slots_base.load(std::memory_order_relaxed) != 0) return CUDA_SUCCESS;
  void* base = nullptr;
  const CUresult result = Memory::AllocatePinned(context, context_value, kSlots * kResultBytes,
                                                 CU_MEMHOSTALLOC_PORTABLE, &base);
  if (result == CUDA_SUCCESS) {
    // The slots outlive the context they were made in: they are no allocation of the program.
    Allocation ours;
    State::Process().allocations.Remove(reinterpret_cast<uint64_t>(base), Allocation::Kind::kPinned,
                                        &ours);
    slots_base.store(reinterpret_cast<uint64_t>(base), std::memory_order_release);
  }
  return result;
}

bool HostResults::Take(void* host, size_t bytes, uint64_t* address) {
  const uint64_t base = slots_base.load(std::memory_order_acquire);
  if (base == 0 || bytes > kResultBytes) return false;
  *address = base + last_slot.fetch_add(1, std::memory_order_relaxed) % kSlots * kResultBytes;
  taken_.push_back({host, bytes, *address});
  return true;
}

CUresult HostResults::Deliver(const Stream& stream) {
  const CUresult result = SynchronizeStream(stream);
  for (const Result& one : taken_) {
    if (result == CUDA_SUCCESS)
      std::memcpy(one.host, reinterpret_cast<const void*>(one.address), one.bytes);
  }
  taken_.clear();
  return result;
}

}  // namespace shim
