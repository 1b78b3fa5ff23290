#include "ipc/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/ipc/testing.h"

namespace ipc {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(SocketTest, CarriesPacketsWholeAndInOrder) {
  auto [one, two] = *ConnectedPair();
  for (const size_t size : {size_t{1}, size_t{100}, kPacketBytesMax}) {
    const std::string text(size, 'a');
    ASSERT_TRUE(SendPacket(one.get(), Bytes(text)).ok());
    const absl::StatusOr<Packet> packet = ReceivePacket(two.get(), kSecondUs);
    ASSERT_TRUE(packet.ok());
    EXPECT_EQ(packet->bytes.size(), size);
  }
}

TEST(SocketTest, CarriesDescriptorsCloseOnExec) {
  auto [one, two] = *ConnectedPair();
  const UniqueFd file(memfd_create("carried", 0));
  ASSERT_EQ(write(file.get(), "hello", 5), 5);
  const int fds[] = {file.get(), file.get(), file.get()};
  ASSERT_TRUE(SendPacket(one.get(), Bytes("x"), fds).ok());
  absl::StatusOr<Packet> packet = ReceivePacket(two.get(), kSecondUs);
  ASSERT_TRUE(packet.ok());
  ASSERT_EQ(packet->fds.size(), 3u);
  char text[5];
  EXPECT_EQ(pread(packet->fds[2].get(), text, 5, 0), 5);
  EXPECT_EQ(std::memcmp(text, "hello", 5), 0);
  EXPECT_NE(fcntl(packet->fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SocketTest, TheEndIsUnavailableAndSilenceADeadline) {
  auto [one, two] = *ConnectedPair();
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReceivePacket(two.get(), 0).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReceivePacket(two.get(), 1000).status()));
  one.Reset();
  EXPECT_TRUE(absl::IsUnavailable(ReceivePacket(two.get(), kSecondUs).status()));
  EXPECT_TRUE(absl::IsUnavailable(SendPacket(two.get(), Bytes("x"))));  // and no SIGPIPE
}

TEST(SocketTest, LastWordsComeThoughTheirSenderDidNotRead) {
  auto [one, two] = *ConnectedPair();
  ASSERT_TRUE(SendPacket(one.get(), Bytes("unread")).ok());
  ASSERT_TRUE(SendPacket(two.get(), Bytes("first")).ok());
  ASSERT_TRUE(SendPacket(two.get(), Bytes("last")).ok());
  two.Reset();
  const absl::StatusOr<Packet> first = ReceivePacket(one.get(), kSecondUs);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->bytes.size(), 5u);
  const absl::StatusOr<Packet> last = ReceivePacket(one.get(), kSecondUs);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->bytes.size(), 4u);
  EXPECT_TRUE(absl::IsUnavailable(ReceivePacket(one.get(), kSecondUs).status()));
}

TEST(SocketTest, ListenReplacesWhatADeadProcessLeft) {
  const TemporaryDir dir;
  const std::string path = dir.path() + "/x.sock";
  EXPECT_TRUE(absl::IsNotFound(ConnectTo(path).status()));
  { const UniqueFd dead = std::move(*ListenAt(path)); }
  EXPECT_TRUE(absl::IsUnavailable(ConnectTo(path).status()));
  const UniqueFd listener = std::move(*ListenAt(path));
  const UniqueFd client = std::move(*ConnectTo(path));
  const UniqueFd server = std::move(*Accept(listener.get()));
  const absl::StatusOr<Peer> peer = PeerOf(server.get());
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(peer->pid, getpid());
  EXPECT_EQ(peer->uid, geteuid());
}

TEST(SocketTest, ASocketThatIsReplacedIsNeverAbsent) {
  const TemporaryDir dir;
  const std::string path = dir.path() + "/x.sock";
  const UniqueFd first = std::move(*ListenAt(path));
  std::atomic<bool> over{false};
  std::jthread asks([&] {
    while (!over.load()) EXPECT_TRUE(std::filesystem::exists(path));
  });
  std::vector<UniqueFd> listeners;
  for (int i = 0; i < 50; ++i) listeners.push_back(std::move(*ListenAt(path)));
  over.store(true);
  EXPECT_TRUE(ConnectTo(path).ok());
}

TEST(SocketTest, ATooLongPathIsRefusedWithTheRemedy) {
  const absl::Status status = ListenAt("/tmp/" + std::string(120, 'x')).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(std::string(status.message()).find("LANEWAY_RUNTIME_DIR"), std::string::npos);
}

TEST(SocketTest, APidfdTellsTheEnd) {
  const TemporaryDir dir;
  const UniqueFd listener = std::move(*ListenAt(dir.path() + "/p.sock"));
  const pid_t child = fork();
  if (child == 0) {
    const absl::StatusOr<UniqueFd> socket = ConnectTo(dir.path() + "/p.sock");
    (void)ReceivePacket(socket->get(), 20 * kSecondUs);
    _exit(0);
  }
  UniqueFd server = std::move(*Accept(listener.get()));
  const absl::StatusOr<UniqueFd> pidfd = PeerPidfd(server.get(), *PeerOf(server.get()));
  ASSERT_TRUE(pidfd.ok()) << pidfd.status();
  EXPECT_FALSE(ProcessEnded(pidfd->get()));
  server.Reset();
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(ProcessEnded(pidfd->get()));
}

}  // namespace
}  // namespace ipc
