// The program's ranges of memory, by address: of the device (allocated by the program or a graph,
// or mapped), of the host (pinned, registered), of both (managed), and of modules' variables.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "shim/arena/persistent.h"
#include "shim/arena/sites.h"
#include "shim/known_ranges.h"
#include "shim/lock_order.h"

namespace shim {

struct Allocation {
  // kAlias: the device's addresses of registered memory (shim/registered_memory.h). kImported:
  // memory of another program (shim/shared_memory.h).
  enum class Kind : uint8_t {
    kDevice,
    kPinned,
    kRegistered,
    kAlias,
    kImported,
    kVariable,
    kManaged,
    kMapped,
    kGraph
  };
  Kind kind = Kind::kDevice;
  uint64_t base = 0;
  uint64_t bytes = 0;
  uint64_t context = 0;
  int device = 0;
  unsigned flags = 0;  // of cuMemHostAlloc, cuMemHostRegister
  uint64_t id = 0;     // CU_POINTER_ATTRIBUTE_BUFFER_ID
  // Where it lies, for DeviceMemory (shim/device_memory.h) and ManagedMemory.
  arena::Persistent::Block block;
  bool ephemeral = false;
  uint64_t pool = 0;  // the program's name of the pool it is from; 0: none
  uint64_t birth = arena::Sites::kNoBirth;
};

// Ranges by address. Thread safety: all methods.
class Allocations {
 public:
  // Under an id of its own, whatever it says.
  void Add(const Allocation& allocation);
  // The one that holds `address`.
  bool Find(uint64_t address, Allocation* found) const;
  // Removes the one that begins at `base` and is of this kind.
  bool Remove(uint64_t base, Allocation::Kind kind, Allocation* removed);
  std::vector<Allocation> OfContext(uint64_t context) const;
  std::vector<Allocation> All() const;
  // From now on remembers what was where. REQUIRES: nothing is allocated yet.
  void Remember();
  // The range that holds `address`, or has held it last since Remember().
  std::optional<KnownRanges::Range> FindKnown(uint64_t address) const;
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  static constexpr size_t kSpareMax = 16;
  mutable base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  std::map<uint64_t, Allocation> by_base_ GUARDED_BY(mutex_);
  // Nodes of the map for later allocations, which then take no memory from the host's heap.
  std::vector<std::map<uint64_t, Allocation>::node_type> spare_ GUARDED_BY(mutex_);
  uint64_t last_id_ GUARDED_BY(mutex_) = 0;
  std::optional<KnownRanges> known_ GUARDED_BY(mutex_);
  std::atomic<size_t> count_{0};
};

}  // namespace shim
