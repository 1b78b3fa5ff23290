// The addresses that one session may name (the arena, the pinned window, variables of modules), and
// which of them have memory now.
//
// A name alone (a graph's node, a workspace, a bias for later) must lie in what is the session's.
// What the device is about to touch must be backed, too, for the whole of its span: in a shared
// context the driver would take any mapped address, and an unmapped one ends everybody's worker.
// Thread safety: one session's thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/worker/arena.h"
#include "daemon/worker/backed_addresses.h"
#include "daemon/worker/pinned.h"

namespace worker {

struct AddressSpan {
  uint64_t address = 0, bytes = 0;
};

class OwnAddresses {
 public:
  // Both outlive this object. Without `backed`, whatever lies in the arena counts as backed.
  OwnAddresses(const Arena* arena, const PinnedMemory* pinned, BackedAddresses* backed,
               uint32_t slot)
      : arena_(*arena), pinned_(*pinned), checks_(backed != nullptr), backed_(backed, slot) {}

  // True when [address, + bytes) is the session's, backed or not.
  bool Owns(uint64_t address, uint64_t bytes) const;
  // True when [address, + bytes) is the session's, and every byte of it is there.
  bool Backs(uint64_t address, uint64_t bytes);
  // All that is backed now: pairs of address and bytes, in their order.
  std::vector<std::pair<uint64_t, uint64_t>> Backed() const { return backed_.Ranges(); }
  // Changes whenever something may be gone that was backed before.
  uint64_t losses() const { return losses_ + backed_.removals(); }

  // The program has freed this range of the arena. The range stays mapped until the device is done
  // with the work before the free, and no later call may touch it. False: it is freed already.
  bool GiveUp(uint64_t address, uint64_t bytes);
  // The range is unmapped, or could not be freed after all; or is sealed no more.
  void Gone(uint64_t address) { shut_.erase(address); }
  bool IsShut(uint64_t address, uint64_t bytes) const;  // a part of it is given up or sealed
  // The range has memory that no call may touch yet.
  void Seal(uint64_t address, uint64_t bytes) { shut_[address] = {address + bytes, true}; }
  bool IsSealed(uint64_t address) const;

  // --- what can be lost besides the arena
  void AddVariable(CUmodule module, uint64_t address, uint64_t bytes);
  // True when the program has asked for the address of a variable or a constant.
  bool HasVariables() const { return !variables_.empty(); }
  void ForgetModule(CUmodule module);
  // Modules and ranges alike, at the end or a reset of the session.
  void ForgetAll();
  void LostPinned() { ++losses_; }

 private:
  // A range that no call may touch.
  struct Shut {
    uint64_t end;
    bool sealed;  // else given up
  };
  struct Variable {
    uint64_t bytes;
    CUmodule module;
  };
  bool InVariable(uint64_t address, uint64_t bytes) const;

  const Arena& arena_;
  const PinnedMemory& pinned_;
  const bool checks_;
  BackedView backed_;
  std::map<uint64_t, Variable> variables_;  // by address
  std::map<uint64_t, Shut> shut_;           // by start
  uint64_t losses_ = 0;
};

// What a graph touches at each launch, and whether it is known to be there.
class TouchedSpans {
 public:
  void Add(const AddressSpan& span) { spans_.push_back(span); }
  void Add(const TouchedSpans& others) {
    spans_.insert(spans_.end(), others.spans_.begin(), others.spans_.end());
  }
  // Costs nothing while nothing was lost since the last time.
  bool AreBacked(OwnAddresses* addresses);

 private:
  std::vector<AddressSpan> spans_;
  bool checked_ = false;
  uint64_t losses_ = 0;
};

}  // namespace worker
