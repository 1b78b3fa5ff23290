#include "replay/slot_address.h"

#include <gtest/gtest.h>

#include "ipc/calls/limits.h"

namespace replay {
namespace {

constexpr uint64_t kSecondSlot = ipc::limits::kSlotBase + ipc::limits::kSlotBytes;

TEST(SlotAddressTest, EachPartHasItsOwnOffsets) {
  const Slot slot(kSecondSlot);
  EXPECT_EQ(slot.Of(kSecondSlot), (SlotAddress{SlotPart::kPersistent, 0}));
  EXPECT_EQ(slot.Of(kSecondSlot + ipc::limits::kEphemeralOffset - 1),
            (SlotAddress{SlotPart::kPersistent, ipc::limits::kPersistentBytes - 1}));
  EXPECT_EQ(slot.Of(kSecondSlot + ipc::limits::kEphemeralOffset + 512),
            (SlotAddress{SlotPart::kLane, 512}));
  EXPECT_EQ(slot.Of(kSecondSlot + ipc::limits::kWorkerOffset),
            (SlotAddress{SlotPart::kWorkspaces, 0}));
  EXPECT_EQ(slot.Of(kSecondSlot + ipc::limits::kDeviceArenaBytes + 8),
            (SlotAddress{SlotPart::kPinned, 8}));
}

TEST(SlotAddressTest, WhatLiesOutsideIsANumber) {
  const Slot slot(kSecondSlot);
  for (const uint64_t number : {uint64_t{0}, kSecondSlot - 1,
                                uint64_t{kSecondSlot + ipc::limits::kSlotBytes}, ~uint64_t{0}}) {
    EXPECT_EQ(slot.Of(number), (SlotAddress{SlotPart::kNone, number}));
  }
}

TEST(SlotAddressTest, AnOffsetIsAnAddressOfAnySlot) {
  uint64_t number = 0;
  ASSERT_TRUE(Slot(kSecondSlot).NumberOf({SlotPart::kLane, 512}, &number));
  EXPECT_EQ(number, kSecondSlot + ipc::limits::kEphemeralOffset + 512);
  ASSERT_TRUE(Slot(ipc::limits::kSlotBase).NumberOf({SlotPart::kLane, 512}, &number));
  EXPECT_EQ(number, ipc::limits::kSlotBase + ipc::limits::kEphemeralOffset + 512);
}

TEST(SlotAddressTest, RefusesWhatNoNumberOfTheSlotHas) {
  const Slot slot(kSecondSlot);
  uint64_t number = 0;
  EXPECT_FALSE(slot.NumberOf({SlotPart::kLane, ipc::limits::kEphemeralBytes}, &number));
  EXPECT_FALSE(slot.NumberOf({SlotPart::kNone, kSecondSlot + 8}, &number));
  EXPECT_FALSE(slot.NumberOf({static_cast<SlotPart>(5), 0}, &number));
  EXPECT_TRUE(slot.NumberOf({SlotPart::kNone, kSecondSlot - 8}, &number));
}

}  // namespace
}  // namespace replay
