#include "functions/serving/stream_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "functions/serving/frames.h"

namespace functions {
namespace {

constexpr int kBacklog = 64;
constexpr size_t kReadBytes = 64u << 10;

absl::Status AddressOf(const std::string& path, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  if (path.size() >= sizeof address->sun_path)
    return absl::InvalidArgumentError(
        absl::StrCat("the path ", path, " is too long for a socket; use a shorter --runtime-dir"));
  std::memcpy(address->sun_path, path.data(), path.size());
  return absl::OkStatus();
}

absl::Status SocketFailure(const std::string& what) {
  return absl::InternalError(absl::StrCat("cannot ", what, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<ipc::UniqueFd> Listen(const std::string& path) {
  sockaddr_un address;
  if (const absl::Status fine = AddressOf(path, &address); !fine.ok()) return fine;
  ipc::UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return SocketFailure("make a socket");
  (void)unlink(path.c_str());
  // The file has the mode from its begin: the process has no other thread that makes files.
  const mode_t before = umask(0177);
  const int bound =
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  umask(before);
  if (bound != 0 || listen(listener.get(), kBacklog) != 0)
    return SocketFailure(absl::StrCat("listen at ", path));
  return listener;
}

absl::StatusOr<ipc::UniqueFd> Connect(const std::string& path) {
  sockaddr_un address;
  if (const absl::Status fine = AddressOf(path, &address); !fine.ok()) return fine;
  ipc::UniqueFd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.valid()) return SocketFailure("make a socket");
  if (connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return made;
  if (errno == ENOENT || errno == ECONNREFUSED)
    return absl::NotFoundError(absl::StrCat("nobody listens at ", path));
  return SocketFailure(absl::StrCat("connect to ", path));
}

ipc::UniqueFd AcceptOwn(int listener) {
  ipc::UniqueFd client(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  ucred peer{};
  socklen_t size = sizeof peer;
  if (!client.valid() || getsockopt(client.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.uid != geteuid())
    return ipc::UniqueFd();
  return client;
}

absl::StatusOr<std::pair<ipc::UniqueFd, ipc::UniqueFd>> StreamPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return SocketFailure("make a socket");
  return std::pair(ipc::UniqueFd(ends[0]), ipc::UniqueFd(ends[1]));
}

bool WriteAll(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return true;
}

bool ReadFrame(int socket, FrameReader* reader, Bytes* body) {
  std::span<const std::byte> whole;
  Bytes room(kReadBytes);
  while (!reader->Peek(&whole)) {
    const ssize_t got = recv(socket, room.data(), room.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || !reader->AddUntrusted(std::span(room).first(static_cast<size_t>(got))))
      return false;
  }
  const Bytes frame = reader->Take();
  body->assign(frame.begin() + sizeof(uint32_t), frame.end());
  return true;
}

}  // namespace functions
