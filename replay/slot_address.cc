#include "replay/slot_address.h"

#include "ipc/calls/limits.h"

namespace replay {
namespace {

struct SlotRange {
  uint64_t begin, bytes;  // in the slot
};

constexpr SlotRange kSlotRanges[] = {
    {0, 0},
    {0, ipc::limits::kPersistentBytes},
    {ipc::limits::kEphemeralOffset, ipc::limits::kEphemeralBytes},
    {ipc::limits::kWorkerOffset, ipc::limits::kWorkerBytes},
    {ipc::limits::kDeviceArenaBytes, ipc::limits::kPinnedWindowBytes},
};
constexpr uint8_t kSlotParts = sizeof kSlotRanges / sizeof kSlotRanges[0];

}  // namespace

SlotAddress Slot::Of(uint64_t number) const {
  const uint64_t offset = number - base_;
  for (uint8_t part = 1; part < kSlotParts; ++part) {
    const SlotRange& range = kSlotRanges[part];
    if (offset - range.begin < range.bytes)
      return {static_cast<SlotPart>(part), offset - range.begin};
  }
  return {SlotPart::kNone, number};
}

bool Slot::NumberOf(const SlotAddress& address, uint64_t* number) const {
  const uint8_t part = static_cast<uint8_t>(address.part);
  if (part >= kSlotParts) return false;
  *number = address.value;
  if (address.part == SlotPart::kNone) return Of(*number) == address;
  if (address.value >= kSlotRanges[part].bytes) return false;
  *number += base_ + kSlotRanges[part].begin;
  return true;
}

}  // namespace replay
