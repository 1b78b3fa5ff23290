#include "ipc/control.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/harness/seed.h"
#include "tests/ipc/testing.h"

namespace ipc::control {
namespace {

using Directions = std::tuple<DaemonToWorker, WorkerToDaemon, DaemonToProgram, ProgramToDaemon,
                              ToKeeper, WorkerToKeeper, KeeperToDaemon, KeeperToWorker>;

template <class List>
struct Each;
template <class... Items>
struct Each<std::tuple<Items...>> {
  template <class Function>
  static void Do(const Function& function) {
    (function(std::type_identity<Items>()), ...);
  }
};

template <class Body, class... Bodies>
constexpr bool IsIn(const std::variant<Bodies...>*) {
  return (std::is_same_v<Body, Bodies> || ...);
}
template <class Direction, class Body>
constexpr bool kHas = IsIn<Body>(static_cast<const Direction*>(nullptr));

// A body with every field in range.
template <class Body>
Body Sample() {
  Body body;
  if constexpr (std::is_same_v<Body, AssignLane>) body.lane = 1;
  return body;
}

// The packet of the body, which is the same in every direction.
template <class Body>
std::vector<std::byte> PacketOf(const Body& body) {
  return Encode(std::variant<Body>(body));
}

template <class Direction>
bool Decodes(const std::type_identity_t<Direction>& message) {
  return DecodeControlUntrusted<Direction>(Encode<Direction>(message)).has_value();
}

// The body as the receiver sees it.
template <class Direction, class Body>
Body Back(const Body& body) {
  return std::get<Body>(*DecodeControlUntrusted<Direction>(Encode<Direction>(body)));
}

TEST(ControlTest, AMessageSurvivesTheWire) {
  AttachSession attach;
  attach.session.session_id = 5;
  attach.session.slot = 3;
  SetText(attach.session.program, "train");
  const AttachSession back = Back<DaemonToWorker>(attach);
  EXPECT_EQ(back.session.session_id, 5u);
  EXPECT_EQ(back.session.slot, 3u);
  EXPECT_STREQ(back.session.program, "train");
}

TEST(ControlTest, AMessageOfAnotherDirectionIsRefused) {
  Each<Types>::Do([]<class Body>(std::type_identity<Body>) {
    const std::vector<std::byte> bytes = PacketOf(Sample<Body>());
    int directions = 0;
    Each<Directions>::Do([&]<class Direction>(std::type_identity<Direction>) {
      const std::optional<Direction> message = DecodeControlUntrusted<Direction>(bytes);
      EXPECT_EQ(message.has_value(), (kHas<Direction, Body>)) << kTypeOf<Body>;
      if constexpr (kHas<Direction, Body>) {
        EXPECT_TRUE(std::holds_alternative<Body>(*message)) << kTypeOf<Body>;
        ++directions;
      }
    });
    EXPECT_GE(directions, 1) << "type " << kTypeOf<Body> << " is sent by no process";
  });
}

TEST(ControlTest, APacketOfAnyOtherSizeIsRefused) {
  Each<Types>::Do([]<class Body>(std::type_identity<Body>) {
    const std::vector<std::byte> good = PacketOf(Sample<Body>());
    Each<Directions>::Do([&]<class Direction>(std::type_identity<Direction>) {
      for (size_t length = 0; length <= good.size() + 1; ++length) {
        if (length == good.size()) continue;
        std::vector<std::byte> bytes = good;
        bytes.resize(length);
        EXPECT_FALSE(DecodeControlUntrusted<Direction>(bytes).has_value());
        if (length < sizeof(ControlHeader)) continue;
        const uint32_t said = static_cast<uint32_t>(length);
        std::memcpy(bytes.data() + offsetof(ControlHeader, bytes), &said, sizeof said);
        EXPECT_FALSE(DecodeControlUntrusted<Direction>(bytes).has_value())
            << "type " << kTypeOf<Body> << " of " << length << " bytes";
      }
    });
  });
}

TEST(ControlTest, APacketOfAnotherVersionOrLengthIsRefused) {
  const std::vector<std::byte> good = PacketOf(Grant{7, 4});
  ControlHeader header;
  std::memcpy(&header, good.data(), sizeof header);
  const auto refused = [&good](const ControlHeader& changed) {
    std::vector<std::byte> bytes = good;
    std::memcpy(bytes.data(), &changed, sizeof changed);
    return !DecodeControlUntrusted<DaemonToWorker>(bytes).has_value();
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
  changed = header;
  changed.type = static_cast<uint32_t>(std::tuple_size_v<Types>);
  EXPECT_TRUE(refused(changed));
}

TEST(ControlTest, LanesAndGrantsSurviveTheWire) {
  Successors successors;
  successors.lane = 4;
  successors.count = 2;
  successors.session_ids[1] = 9;
  const Successors back = Back<DaemonToWorker>(successors);
  EXPECT_EQ(back.lane, 4u);
  EXPECT_EQ(back.count, 2u);
  EXPECT_EQ(back.session_ids[1], 9u);
  EXPECT_EQ(Back<DaemonToWorker>(Grant{7, 4}).session_id, 7u);
  EXPECT_EQ(Back<DaemonToProgram>(Revoke{8}).session_id, 8u);
  const AssignLane lane = Back<DaemonToWorker>(AssignLane{3, 4, 5, 1, 2, 0});
  EXPECT_EQ(lane.bytes, 5u);
  EXPECT_EQ(lane.result, 2u);
  const Switched switched = Back<WorkerToDaemon>(Switched{4, 1, 2, -1});
  EXPECT_EQ(switched.to, 2u);
  EXPECT_EQ(switched.at_us, -1);
}

TEST(ControlTest, EmptyMessagesHaveNoBody) {
  EXPECT_EQ(PacketOf(Query{}).size(), sizeof(ControlHeader));
  EXPECT_EQ(PacketOf(ListEnd{}).size(), sizeof(ControlHeader));
}

TEST(ControlTest, OnlyWhatExistsInAnotherDirectionIsRedirected) {
  const std::optional<DaemonToProgram> grant =
      Redirected<DaemonToProgram>(DaemonToWorker(Grant{7, 4}));
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(std::get<Grant>(*grant).lane, 4u);
  EXPECT_FALSE(Redirected<DaemonToProgram>(DaemonToWorker(Sample<AssignLane>())).has_value());
  EXPECT_FALSE(Redirected<DaemonToProgram>(DaemonToWorker(Stop{})).has_value());
}

TEST(ControlTest, WhatIsOutOfRangeIsRefused) {
  SessionRecord record;
  record.slot = limits::kSlots;
  EXPECT_FALSE(Decodes<WorkerToDaemon>(record));
  EXPECT_FALSE(Decodes<DaemonToWorker>(AttachSession{record}));
  record.slot = 0;
  record.transport = static_cast<Transport>(9);
  EXPECT_FALSE(Decodes<WorkerToDaemon>(record));
  record.transport = Transport::kZmq;
  record.device = kDevicesMax;
  EXPECT_FALSE(Decodes<DaemonToWorker>(record));
  record.device = kDevicesMax - 1;
  record.job.scheduling.weight = 0;
  EXPECT_FALSE(Decodes<DaemonToWorker>(record));
  record.job.scheduling.weight = 1;
  record.place = {scheduler::Residence::kDevice, 1};
  EXPECT_FALSE(Decodes<WorkerToDaemon>(record)) << "on the device, with its lane on the host";
  record.place = {scheduler::Residence::kHost, 1};
  record.pause = static_cast<scheduler::Pause>(3);
  EXPECT_FALSE(Decodes<WorkerToDaemon>(record));
  record.pause = scheduler::Pause::kEvicted;
  EXPECT_TRUE(Decodes<DaemonToWorker>(record));
  EXPECT_FALSE(Decodes<WorkerToDaemon>(WorkerReady{1, 2, kDevicesMax + 1, 0}));
  EXPECT_FALSE(Decodes<WorkerToDaemon>(GateReport{1, static_cast<GateEvent>(3)}));
  EXPECT_FALSE(Decodes<ProgramToDaemon>(GateReport{1, static_cast<GateEvent>(uint64_t{1} << 32)}));
  Successors successors;
  successors.count = kSuccessorsMax;
  EXPECT_TRUE(Decodes<DaemonToWorker>(successors));
  successors.count = kSuccessorsMax + 1;
  EXPECT_FALSE(Decodes<DaemonToWorker>(successors));
  successors.count = uint64_t{1} << 32;
  EXPECT_FALSE(Decodes<DaemonToWorker>(successors));
}

TEST(ControlTest, OnlyARefusalNamesNoLane) {
  EXPECT_FALSE(Decodes<DaemonToWorker>(AssignLane{1, 0, 3, 0, 0, 0}));
  EXPECT_TRUE(Decodes<DaemonToWorker>(AssignLane{1, 0, 3, 0, 2, 1}));
}

TEST(ControlTest, OwnersOfNoKindAreRefused) {
  const Owner nobody{static_cast<OwnerKind>(7), 1};
  EXPECT_FALSE(Decodes<WorkerToKeeper>(ListExtents{nobody}));
  EXPECT_FALSE(Decodes<ToKeeper>(ReleaseOwner{nobody}));
  EXPECT_FALSE(Decodes<ToKeeper>(CountOutside{nobody, 1, 0}));
  EXPECT_FALSE(Decodes<WorkerToKeeper>(ChangeOwner{1, nobody, 0, 0}));
  ExtentList extents;
  extents.count = 1;
  extents.extents[0].owner = nobody;
  EXPECT_FALSE(Decodes<KeeperToWorker>(extents));
  UsageList usages;
  usages.count = 1;
  usages.usages[0].owner = nobody;
  EXPECT_FALSE(Decodes<KeeperToDaemon>(usages));
}

TEST(ControlTest, DevicesPastTheLastAreRefused) {
  constexpr uint64_t kPast[] = {kDevicesMax, uint64_t{1} << 32};
  for (const uint64_t device : kPast) {
    EXPECT_FALSE(Decodes<ProgramToDaemon>(MemoryNeeded{1, 2, device}));
    EXPECT_FALSE(Decodes<WorkerToDaemon>(LaneNeeded{1, 2, device}));
    EXPECT_FALSE(Decodes<ToKeeper>(CountOutside{{OwnerKind::kSession, 1}, 1, device}));
  }
  EXPECT_TRUE(Decodes<ProgramToDaemon>(MemoryNeeded{1, 2, kDevicesMax - 1}));
  EXPECT_FALSE(Decodes<DaemonToWorker>(AssignLane{1, 2, 3, kDevicesMax, 0, 0}));
  EXPECT_FALSE(Decodes<ProgramToDaemon>(GetMemory{kDevicesMax}));
  EXPECT_FALSE(Decodes<WorkerToKeeper>(GetMemory{kDevicesMax}));
  ExtentRecord extent;
  extent.device = kDevicesMax;
  EXPECT_FALSE(Decodes<WorkerToKeeper>(CreateExtent{extent}));
  EXPECT_FALSE(Decodes<WorkerToKeeper>(AdoptExtent{extent}));
}

TEST(ControlTest, ListsLongerThanTheirTableAreRefused) {
  UsageList usages;
  usages.count = kUsagesMax + 1;
  EXPECT_FALSE(Decodes<KeeperToDaemon>(usages));
  usages.count = kUsagesMax;
  EXPECT_TRUE(Decodes<KeeperToDaemon>(usages));
  usages.usages[kUsagesMax - 1].device = kDevicesMax;
  EXPECT_FALSE(Decodes<KeeperToDaemon>(usages));
  ExtentList extents;
  extents.count = kExtentsMax + 1;
  EXPECT_FALSE(Decodes<KeeperToWorker>(extents));
  extents.count = uint64_t{1} << 32;
  EXPECT_FALSE(Decodes<KeeperToWorker>(extents));
  KeeperReady ready;
  ready.device_count = kDevicesMax + 1;
  EXPECT_FALSE(Decodes<KeeperToDaemon>(ready));
  ready.device_count = 1;
  ready.kind = static_cast<DeviceKind>(2);
  EXPECT_FALSE(Decodes<KeeperToDaemon>(ready));
}

TEST(ControlTest, ATextWithoutEndGetsOne) {
  Poisoned poisoned;
  std::memset(poisoned.text, 'x', sizeof poisoned.text);
  EXPECT_EQ(std::strlen(Back<WorkerToDaemon>(poisoned).text), sizeof poisoned.text - 1);
  StartFailed failed;
  std::memset(failed.sentence, 'x', sizeof failed.sentence);
  EXPECT_EQ(std::strlen(Back<KeeperToDaemon>(failed).sentence), sizeof failed.sentence - 1);
}

TEST(ControlTest, RandomBytesNeverHarm) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random() % 3000);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (bytes.size() >= sizeof(ControlHeader) && round % 2 == 0) {  // a header that is believed
      ControlHeader header;
      header.type = static_cast<uint32_t>(random() % (std::tuple_size_v<Types> + 1));
      header.bytes = static_cast<uint32_t>(bytes.size());
      std::memcpy(bytes.data(), &header, sizeof header);
    }
    Each<Directions>::Do([&bytes]<class Direction>(std::type_identity<Direction>) {
      (void)DecodeControlUntrusted<Direction>(bytes);
    });
  }
}

TEST(ControlTest, SendAndReceiveWithDescriptors) {
  auto [one, two] = *ConnectedPair();
  const int fds[] = {one.get()};
  ASSERT_TRUE(Send<KeeperToWorker>(one.get(), ExtentReply{7, 0, 0}, fds).ok());
  const absl::StatusOr<Received<KeeperToWorker>> received =
      Receive<KeeperToWorker>(two.get(), kSecondUs);
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(std::get<ExtentReply>(received->message).id, 7u);
  EXPECT_EQ(received->fds.size(), 1u);
}

TEST(ControlTest, AReceiverIsToldOfAnotherDirection) {
  auto [one, two] = *ConnectedPair();
  ASSERT_TRUE(Send<WorkerToDaemon>(one.get(), SessionEnded{7}).ok());
  ASSERT_TRUE(Send<ProgramToDaemon>(one.get(), MemoryFreed{7, 1}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Receive<ProgramToDaemon>(two.get(), kSecondUs).status()));
  EXPECT_TRUE(Receive<ProgramToDaemon>(two.get(), kSecondUs).ok()) << "the next one is heard";
}

}  // namespace
}  // namespace ipc::control
