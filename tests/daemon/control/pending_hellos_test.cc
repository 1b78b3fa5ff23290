#include "daemon/control/pending_hellos.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "daemon/control/hello_check.h"

namespace control {
namespace {

class PendingHellosTest : public ::testing::Test {
 protected:
  // Adds a connection. Returns the program's end.
  ipc::UniqueFd Connect() {
    int pair[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    hellos_.Add(ipc::UniqueFd(pair[0]));
    return ipc::UniqueFd(pair[1]);
  }
  static void SayHello(int fd) {
    ipc::Hello hello;
    hello.tables = ipc::OwnTables();
    EXPECT_TRUE(
        ipc::SendPacket(fd, {reinterpret_cast<const std::byte*>(&hello), sizeof hello}).ok());
  }
  // What the program hears: the code of a welcome, or -1 when its connection has ended.
  static int64_t Hears(int fd) {
    const absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(fd, 0);
    if (!packet.ok() || packet->bytes.size() != sizeof(ipc::Welcome)) return -1;
    return reinterpret_cast<const ipc::Welcome*>(packet->bytes.data())->result;
  }

  common::EventLoop loop_;
  int heard_ = 0;
  PendingHellos hellos_{
      &loop_, [this](const ipc::Hello&, const ipc::Peer& peer, ipc::UniqueFd, ipc::UniqueFd) {
        EXPECT_EQ(peer.pid, getpid());
        ++heard_;
      }};
};

TEST_F(PendingHellosTest, AHelloIsPassedOn) {
  const ipc::UniqueFd program = Connect();
  SayHello(program.get());
  loop_.RunOnce();
  EXPECT_EQ(heard_, 1);
  EXPECT_EQ(hellos_.size(), 0u);
}

TEST_F(PendingHellosTest, GarbageIsRefused) {
  const ipc::UniqueFd program = Connect();
  const std::byte garbage[8] = {};
  ASSERT_TRUE(ipc::SendPacket(program.get(), garbage).ok());
  loop_.RunOnce();
  EXPECT_EQ(heard_, 0);
  EXPECT_GT(Hears(program.get()), 0);
}

TEST_F(PendingHellosTest, WhileLanewaydEndsEveryHelloIsRefused) {
  const ipc::UniqueFd program = Connect();
  hellos_.Stop();
  SayHello(program.get());
  loop_.RunOnce();
  EXPECT_EQ(heard_, 0);
  EXPECT_GT(Hears(program.get()), 0);
}

TEST_F(PendingHellosTest, TheOldestConnectionMakesRoom) {
  std::vector<ipc::UniqueFd> programs;
  for (size_t i = 0; i <= PendingHellos::kConnectionsMax; ++i) programs.push_back(Connect());
  EXPECT_EQ(hellos_.size(), PendingHellos::kConnectionsMax);
  EXPECT_EQ(Hears(programs[0].get()), -1);
}

}  // namespace
}  // namespace control
