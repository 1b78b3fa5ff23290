#include "ipc/control.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/ipc/testing.h"

namespace ipc::control {
namespace {

TEST(ControlTest, AMessageSurvivesTheWire) {
  AttachSession attach;
  attach.session.session_id = 5;
  attach.session.slot = 3;
  SetText(attach.session.program, "train");
  const std::optional<Message> message = DecodeControlUntrusted(Encode(attach));
  ASSERT_TRUE(message.has_value());
  const AttachSession& back = std::get<AttachSession>(*message);
  EXPECT_EQ(back.session.session_id, 5u);
  EXPECT_EQ(back.session.slot, 3u);
  EXPECT_STREQ(back.session.program, "train");
}

TEST(ControlTest, APacketOfAnotherVersionOrLengthIsRefused) {
  const std::vector<std::byte> good = Encode(Grant{7, 4});
  ControlHeader header;
  std::memcpy(&header, good.data(), sizeof header);
  const auto refused = [&good](const ControlHeader& changed) {
    std::vector<std::byte> bytes = good;
    std::memcpy(bytes.data(), &changed, sizeof changed);
    return !DecodeControlUntrusted(bytes).has_value();
  };
  EXPECT_FALSE(refused(header));
  ControlHeader changed = header;
  ++changed.protocol_version;
  EXPECT_TRUE(refused(changed));
  changed = header;
  ++changed.bytes;
  EXPECT_TRUE(refused(changed));
  changed = header;
  ++changed.magic;
  EXPECT_TRUE(refused(changed));
}

TEST(ControlTest, LanesAndGrantsSurviveTheWire) {
  Successors successors;
  successors.lane = 4;
  successors.count = 2;
  successors.session_ids[1] = 9;
  const Successors back = std::get<Successors>(*DecodeControlUntrusted(Encode(successors)));
  EXPECT_EQ(back.lane, 4u);
  EXPECT_EQ(back.count, 2u);
  EXPECT_EQ(back.session_ids[1], 9u);
  EXPECT_EQ(std::get<Grant>(*DecodeControlUntrusted(Encode(Grant{7, 4}))).session_id, 7u);
  EXPECT_EQ(std::get<Revoke>(*DecodeControlUntrusted(Encode(Revoke{8}))).session_id, 8u);
  const AssignLane lane =
      std::get<AssignLane>(*DecodeControlUntrusted(Encode(AssignLane{3, 4, 5, 1, 2, 0})));
  EXPECT_EQ(lane.bytes, 5u);
  EXPECT_EQ(lane.result, 2u);
  const Switched switched =
      std::get<Switched>(*DecodeControlUntrusted(Encode(Switched{4, 1, 2, -1})));
  EXPECT_EQ(switched.to, 2u);
  EXPECT_EQ(switched.at_us, -1);
}

TEST(ControlTest, EmptyMessagesHaveNoBody) {
  EXPECT_EQ(Encode(Query{}).size(), sizeof(ControlHeader));
  EXPECT_TRUE(std::holds_alternative<Query>(*DecodeControlUntrusted(Encode(Query{}))));
  EXPECT_TRUE(
      std::holds_alternative<KeeperChanged>(*DecodeControlUntrusted(Encode(KeeperChanged{}))));
}

TEST(ControlTest, WhatIsOutOfRangeIsRefused) {
  SessionRecord record;
  record.slot = limits::kSlots;
  EXPECT_FALSE(DecodeControlUntrusted(Encode(record)).has_value());
  record.slot = 0;
  record.transport = static_cast<Transport>(9);
  EXPECT_FALSE(DecodeControlUntrusted(Encode(record)).has_value());
  UsageList list;
  list.count = kUsagesMax + 1;
  EXPECT_FALSE(DecodeControlUntrusted(Encode(list)).has_value());
  CreateExtent create;
  create.extent.device = kDevicesMax;
  EXPECT_FALSE(DecodeControlUntrusted(Encode(create)).has_value());
  const Owner nobody{static_cast<OwnerKind>(7), 1};
  EXPECT_FALSE(DecodeControlUntrusted(Encode(ListExtents{nobody})).has_value());
  EXPECT_FALSE(DecodeControlUntrusted(Encode(ReleaseOwner{nobody})).has_value());
  EXPECT_FALSE(DecodeControlUntrusted(Encode(ChangeOwner{1, nobody, 0, 0})).has_value());
  ExtentList extents;
  extents.count = kExtentsMax + 1;
  EXPECT_FALSE(DecodeControlUntrusted(Encode(extents)).has_value());
  EXPECT_FALSE(DecodeControlUntrusted(Encode(AssignLane{1, 2, 3, kDevicesMax, 0, 0})).has_value());
  EXPECT_FALSE(DecodeControlUntrusted(Encode(AssignLane{1, 0, 3, 0, 0, 0})).has_value());
  EXPECT_TRUE(DecodeControlUntrusted(Encode(AssignLane{1, 0, 3, 0, 2, 1})).has_value())
      << "a refusal of who is in no lane";
  EXPECT_FALSE(DecodeControlUntrusted(Encode(MemoryNeeded{1, 2, kDevicesMax})).has_value());
  EXPECT_FALSE(DecodeControlUntrusted(Encode(LaneNeeded{1, 2, kDevicesMax})).has_value());
  EXPECT_FALSE(
      DecodeControlUntrusted(Encode(GateReport{1, static_cast<GateEvent>(3)})).has_value());
  Successors successors;
  successors.count = kSuccessorsMax + 1;
  EXPECT_FALSE(DecodeControlUntrusted(Encode(successors)).has_value());
}

TEST(ControlTest, ATextWithoutEndGetsOne) {
  Poisoned poisoned;
  std::memset(poisoned.text, 'x', sizeof poisoned.text);
  const std::optional<Message> message = DecodeControlUntrusted(Encode(poisoned));
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(std::strlen(std::get<Poisoned>(*message).text), sizeof poisoned.text - 1);
}

TEST(ControlTest, EveryPrefixAndEveryLongerPacketIsRefused) {
  std::vector<std::byte> bytes = Encode(WorkerReady{1, 2, 3});
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(
        DecodeControlUntrusted(std::span<const std::byte>(bytes).first(length)).has_value());
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(DecodeControlUntrusted(bytes).has_value());
}

TEST(ControlTest, RandomBytesNeverHarm) {
  std::mt19937_64 random = Seeded();
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random() % 3000);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (bytes.size() >= sizeof(ControlHeader) && round % 2 == 0) {  // a header that is believed
      ControlHeader header;
      header.type = static_cast<uint32_t>(random() % (std::variant_size_v<Message> + 1));
      header.bytes = static_cast<uint32_t>(bytes.size());
      std::memcpy(bytes.data(), &header, sizeof header);
    }
    (void)DecodeControlUntrusted(bytes);
  }
}

TEST(ControlTest, SendAndReceiveWithDescriptors) {
  auto [one, two] = *ConnectedPair();
  const int fds[] = {one.get()};
  ASSERT_TRUE(Send(one.get(), ExtentReply{7, 0, 0}, fds).ok());
  const absl::StatusOr<Received> received = Receive(two.get(), kSecondUs);
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(std::get<ExtentReply>(received->message).id, 7u);
  EXPECT_EQ(received->fds.size(), 1u);
}

}  // namespace
}  // namespace ipc::control
