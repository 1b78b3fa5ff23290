#include "ipc/zmq_channel.h"

#include <gtest/gtest.h>
#include <zmq.h>

#include <filesystem>
#include <thread>

#include "tests/harness/seed.h"
#include "tests/ipc/testing.h"

namespace ipc {
namespace {

constexpr int64_t kTimeoutUs = 20 * kSecondUs;

class ZmqChannelTest : public ::testing::Test {
 protected:
  ZmqChannelTest()
      : endpoint_("ipc://" + dir_.path() + "/session-1.zmq"),
        worker_(*BindZmqChannel(endpoint_, kToken)),
        client_(*ConnectZmqChannel(endpoint_, kToken)) {}

  static void Send(Sender* sender, size_t bytes, uint32_t number) {
    const std::span<std::byte> room = sender->Reserve(bytes, kTimeoutUs);
    ASSERT_EQ(room.size(), bytes);
    FillMessage(room, number);
    sender->Commit(bytes);
  }

  static constexpr CallToken kToken{std::byte{1}, std::byte{2}, std::byte{3}};

  const TemporaryDir dir_;
  const std::string endpoint_;
  Channel worker_, client_;
};

TEST_F(ZmqChannelTest, CarriesAMessageBothWays) {
  Send(client_.sender.get(), 100, 1);
  EXPECT_TRUE(IsMessage(worker_.receiver->NextUntrusted(0, kTimeoutUs), 1));
  Send(worker_.sender.get(), limits::kMessageBytesMax, 2);
  EXPECT_TRUE(IsMessage(client_.receiver->NextUntrusted(0, kTimeoutUs), 2));
}

TEST_F(ZmqChannelTest, APeekLeavesTheMessageWhereItIs) {
  EXPECT_TRUE(worker_.receiver->PeekUntrusted(0, 0).empty());
  EXPECT_FALSE(worker_.receiver->Pending());
  Send(client_.sender.get(), 100, 3);
  EXPECT_TRUE(IsMessage(worker_.receiver->PeekUntrusted(0, kTimeoutUs), 3));
  EXPECT_TRUE(worker_.receiver->Pending());
  EXPECT_TRUE(IsMessage(worker_.receiver->PeekUntrusted(0, 0), 3));
  EXPECT_TRUE(IsMessage(worker_.receiver->NextUntrusted(0, kTimeoutUs), 3));
  EXPECT_FALSE(worker_.receiver->Pending());
  EXPECT_TRUE(worker_.receiver->PeekUntrusted(0, 0).empty());
}

TEST_F(ZmqChannelTest, NothingComesWhenNothingWasSent) {
  EXPECT_TRUE(worker_.receiver->NextUntrusted(0, 0).empty());
  EXPECT_TRUE(worker_.receiver->NextUntrusted(0, 2000).empty());
  EXPECT_FALSE(worker_.receiver->broken());
}

// A thread that waits to receive must not miss what comes while another thread sends on the same
// socket.
TEST_F(ZmqChannelTest, ARequestAndItsReplyOnDifferentThreads) {
  constexpr uint32_t kMessages = 3000;
  std::thread echo([this] {
    for (uint32_t i = 0; i < kMessages; ++i) {
      const std::span<const std::byte> message = worker_.receiver->NextUntrusted(0, kTimeoutUs);
      ASSERT_TRUE(IsMessage(message, i)) << i;
      Send(worker_.sender.get(), message.size(), i);
    }
  });
  std::thread replies([this] {
    for (uint32_t i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(IsMessage(client_.receiver->NextUntrusted(0, kTimeoutUs), i)) << i;
    }
  });
  std::mt19937_64 random(harness::Seed());
  for (uint32_t i = 0; i < kMessages; ++i) Send(client_.sender.get(), RandomBytes(&random), i);
  echo.join();
  replies.join();
}

TEST_F(ZmqChannelTest, AFullQueueMakesTheSenderWaitAndLosesNothing) {
  uint32_t sent = 0;
  while (true) {
    const std::span<std::byte> room = client_.sender->Reserve(1024, 0);
    if (room.empty()) break;
    FillMessage(room, sent++);
    client_.sender->Commit(1024);
    ASSERT_LT(sent, 100'000u);
  }
  std::thread more([this, sent] {
    for (uint32_t i = sent; i < sent + 500; ++i) Send(client_.sender.get(), 1024, i);
  });
  for (uint32_t i = 0; i < sent + 500; ++i) {
    ASSERT_TRUE(IsMessage(worker_.receiver->NextUntrusted(0, kTimeoutUs), i))
        << i << " of " << sent;
  }
  more.join();
}

TEST_F(ZmqChannelTest, OnlyWhoHasTheTokenIsHeardThoughItSpeaksFirst) {
  const std::string path = dir_.path() + "/session-2.zmq";
  worker_ = *BindZmqChannel("ipc://" + path, kToken);
  CallToken almost = kToken;
  almost.back() = std::byte{1};
  Channel intruder = *ConnectZmqChannel("ipc://" + path, almost);
  Send(intruder.sender.get(), 64, 99);
  EXPECT_TRUE(worker_.receiver->NextUntrusted(0, 200'000).empty());
  client_ = *ConnectZmqChannel("ipc://" + path, kToken);
  Send(client_.sender.get(), 64, 1);
  ASSERT_TRUE(IsMessage(worker_.receiver->NextUntrusted(0, kTimeoutUs), 1));
  Send(intruder.sender.get(), 64, 99);
  Send(client_.sender.get(), 64, 2);
  uint32_t seen = 0;
  for (int i = 0; i < 2 && seen == 0; ++i) {
    const std::span<const std::byte> message = worker_.receiver->NextUntrusted(0, kTimeoutUs);
    EXPECT_FALSE(IsMessage(message, 99));
    if (IsMessage(message, 2)) seen = 2;
  }
  EXPECT_EQ(seen, 2u);
}

TEST_F(ZmqChannelTest, ALengthThatLiesBreaksTheChannel) {
  const std::span<std::byte> room = client_.sender->Reserve(64, 0);
  FillMessage(room, 1);
  const uint32_t lie = 65;
  std::memcpy(room.data(), &lie, sizeof lie);
  client_.sender->Commit(64);
  EXPECT_TRUE(worker_.receiver->NextUntrusted(0, kTimeoutUs).empty());
  EXPECT_TRUE(worker_.receiver->broken());
}

TEST_F(ZmqChannelTest, TheSocketFileIsTheUsersAloneAndGoesWithTheWorker) {
  const std::string path = endpoint_.substr(6);
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  worker_ = Channel{};
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace ipc
