// The books of the program's own virtual memory management: which addresses it has reserved, which
// physical memory it has created, and which memory it has mapped where.
//
// The worker backs physical memory at one place at a time. At first the place is an address that no
// program is told of (the memory's home), and once the program opens a mapping of the memory, the
// mapping's address. The memory stays there after the mapping has ended, until its place is wanted
// by other memory or by the program's next mapping of it: so an end of a mapping moves nothing and
// waits for nothing. A second mapping of the same memory would need a second place, and is refused.
//
// Pure bookkeeping: it asks no worker and chooses no addresses. All ranges are multiples of
// kVirtualStep. Thread safety: none; the owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "shim/arena/blocks.h"

namespace shim::arena {

inline constexpr uint64_t kVirtualStep = uint64_t{2} << 20;

class VirtualRanges {
 public:
  using Id = uint64_t;  // of physical memory; 0: none

  struct Memory {
    uint64_t bytes = 0;
    int device = 0;
    uint64_t note = 0;     // what the creator says of it; never read here
    unsigned handles = 1;  // how often the program may release it
    uint64_t place = 0;    // where the worker backs it
    bool at_home = true;   // the addresses of the place are its own
    bool used = false;     // work of the program may use it: it has been where it was mapped
    uint64_t mapping = 0;  // where the program has mapped it; 0: nowhere
    bool open = false;     // the mapping may be used
  };
  enum class MapAnswer : uint8_t { kMapped, kInvalid, kSecondMapping, kPartOfMemory };

  // --- addresses. REQUIRES: nothing of the range is reserved.
  void Reserve(Range range);
  // False: this is no whole reservation, or something is mapped in it.
  bool Unreserve(Range range);
  // The reservation around the address; false when there is none.
  bool FindReservation(uint64_t address, Range* found) const;

  // --- physical memory, backed at `place`, with one handle
  Id Create(uint64_t bytes, int device, uint64_t place, uint64_t note);
  // Null when there is none, or the program has no handle of it any more.
  const Memory* Find(Id id) const;
  // One more handle of what is mapped at the address; 0: nothing is.
  Id Retain(uint64_t address);
  // True: the handle was one. *unused: no handle and no mapping is left, and *memory is gone.
  bool Release(Id id, bool* unused, Memory* memory);

  // --- mappings
  MapAnswer Map(Range range, Id id);
  // The memories whose mappings make up the range, by address; empty when the range does not
  // consist of whole mappings.
  std::vector<Id> MappedIn(Range range) const;
  // What is mapped around the address; 0: nothing.
  Id MappedAt(uint64_t address) const;
  // REQUIRES: it is mapped. True: no handle is left either, and *memory is gone.
  bool Unmap(Id id, Memory* memory);
  void SetOpen(Id id, bool open) { memories_.at(id).open = open; }

  // --- places
  const Memory& At(Id id) const { return memories_.at(id); }
  // Memories that lie in a part of the range, and are not `but`.
  std::vector<Id> LyingIn(Range range, Id but) const;
  void Moved(Id id, uint64_t place, bool home);

  // Every memory and mapping on the device goes.
  void ForgetDevice(int device, std::vector<Memory>* gone);

 private:
  using Memories = std::map<Id, Memory>;
  void Forget(Memories::iterator memory, Memory* gone);

  std::map<uint64_t, uint64_t> reservations_;  // bytes by start
  Memories memories_;
  std::map<uint64_t, Id> mappings_;  // by start
  std::map<uint64_t, Id> places_;    // by start
  Id last_id_ = 0;
};

}  // namespace shim::arena
