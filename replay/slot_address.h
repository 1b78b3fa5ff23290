// Addresses as offsets into the parts of a session's slot (ipc/calls/limits.h).
//
// A lane has the same addresses in every iteration, and a session that comes again may get another
// slot. An argument that is kept longer than a session is therefore kept as a part and an offset.
// Thread safety: values.
#pragma once

#include <cstdint>

namespace replay {

enum class SlotPart : uint8_t {
  kNone,        // no address of this slot: a number
  kPersistent,  // memory that outlives iterations
  kLane,        // memory that is born and dies within one iteration
  kWorkspaces,  // what the worker places itself
  kPinned,      // host memory that both sides see
};

struct SlotAddress {
  SlotPart part = SlotPart::kNone;
  uint64_t value = 0;  // the offset in the part; of kNone, the number itself
  bool operator==(const SlotAddress&) const = default;
};

class Slot {
 public:
  // REQUIRES: a slot of kSlotBytes at `base` does not pass the end of the address space.
  explicit Slot(uint64_t base) : base_(base) {}

  // Every number has exactly one SlotAddress. A number that is no address, but equals one of the
  // slot, cannot be told from it.
  SlotAddress Of(uint64_t number) const;
  // The number; false: no slot has this SlotAddress, or it is a number that this slot has as an
  // address.
  bool NumberOf(const SlotAddress& address, uint64_t* number) const;

 private:
  uint64_t base_;
};

}  // namespace replay
