// What lies at each address that the driver handed out: cuMemAlloc blocks, pinned and managed
// memory, registered host memory, mapped extents.
//
// Also answers the executor's question about addresses outside the window (registered memory).
// Thread safety: every function may be called from any thread. Records are immutable but for their
// access and flags, which are atomic.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "softgpu/driver/charge.h"
#include "softgpu/driver/extent.h"
#include "softgpu/exec/launch.h"

namespace softgpu {

class Heap;
class MemoryPool;

struct Allocation {
  enum class Kind { kDevice, kManaged, kVariable, kPinned, kRegistered, kMapping, kArray };

  Allocation() = default;
  ~Allocation();  // gives heap memory back
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  Kind kind = Kind::kDevice;
  uint64_t base = 0, bytes = 0;
  int device = 0;
  uint64_t context_id = 0;           // 0: belongs to no context (mappings)
  uint64_t id = 0;                   // CU_POINTER_ATTRIBUTE_BUFFER_ID
  unsigned host_flags = 0;           // of cuMemHostAlloc or cuMemHostRegister
  Heap* heap = nullptr;              // where the memory goes back to
  std::shared_ptr<Extent> extent;    // of a mapping
  std::shared_ptr<MemoryPool> pool;  // of stream-ordered memory
  Charge charge;
  std::atomic<unsigned long long> access{CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  std::atomic<bool> sync_memops{false};
  std::atomic<bool> graph_free{false};  // a graph's, and not the program's now
  std::vector<void*> site;              // under check=1: the calls that made it, innermost first

  uint64_t end() const { return base + bytes; }
  const char* kind_name() const { return host() ? "pinned" : "device"; }
  bool host() const { return kind == Kind::kPinned || kind == Kind::kRegistered; }
};

class MemoryMap final : public Memory {
 public:
  static uint64_t NextId();

  // False when a record overlaps it.
  bool Add(std::shared_ptr<Allocation> allocation);
  // The record that contains `address`.
  std::shared_ptr<Allocation> Find(uint64_t address) const;
  // Removes the record that starts at `base` if `matches` agrees.
  std::shared_ptr<Allocation> Remove(uint64_t base,
                                     const std::function<bool(const Allocation&)>& matches);
  std::vector<std::shared_ptr<Allocation>> RemoveContext(uint64_t context_id);
  // The records that overlap [address, address + bytes), in order.
  std::vector<std::shared_ptr<Allocation>> Overlapping(uint64_t address, uint64_t bytes) const;

  // True when every byte belongs to some record that a device may access.
  bool Covers(uint64_t address, uint64_t bytes) const;
  // True when the range touches no record at all: plain host memory.
  bool Pageable(uint64_t address, uint64_t bytes) const;

  bool ContainsOutsideWindow(uint64_t address, uint64_t bytes) const override;
  Range AllocationAt(uint64_t address) const override;
  std::string Near(uint64_t address) const override;

  // From now on Allocation::site is filled.
  void KeepSites() { keeps_sites_ = true; }

 private:
  using Records = std::map<uint64_t, std::shared_ptr<Allocation>>;  // by base
  Records::const_iterator FirstEndingAfter(uint64_t address) const REQUIRES_SHARED(mutex_);

  std::atomic<bool> keeps_sites_{false};
  mutable base::SharedMutex mutex_;
  Records records_ GUARDED_BY(mutex_);
};

}  // namespace softgpu
