#include "ipc/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ipc/calls/limits.h"

namespace ipc {
namespace {

constexpr int kBacklog = 256;
constexpr int kGetPeerPidfd = 77;  // SO_PEERPIDFD, Linux 6.5

absl::Status Errno(std::string_view what) {
  const int error = errno;
  const std::string text = absl::StrCat(std::string(what), ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case EAGAIN:
      return absl::DeadlineExceededError(text);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case ETOOMANYREFS:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::UnavailableError(text);
  }
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  if (path.size() > limits::kPathBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("the socket path ", path, " is longer than ", limits::kPathBytesMax,
                     " characters; set LANEWAY_RUNTIME_DIR to a shorter directory"));
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

absl::StatusOr<UniqueFd> NewSocket() {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Errno("socket");
  return fd;
}

// True when the socket is ready for `events` in time; end of file counts as ready.
bool WaitFor(int socket, short events, int64_t timeout_us) {
  pollfd entry{socket, events, 0};
  const timespec timeout{static_cast<time_t>(timeout_us / 1'000'000),
                         static_cast<long>(timeout_us % 1'000'000 * 1'000)};
  int ready = 0;
  do {
    ready = ppoll(&entry, 1, &timeout, nullptr);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

void TakeDescriptors(msghdr* message, std::vector<UniqueFd>* fds) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      fds->emplace_back(fd);
    }
  }
}

}  // namespace

absl::StatusOr<UniqueFd> ListenAt(const std::string& path) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  // No longer than the path, which may have all the bytes of a socket address.
  const std::string temporary = path.substr(0, path.size() - 1) + "~";
  const absl::StatusOr<sockaddr_un> made_at = AddressOf(temporary);
  absl::StatusOr<UniqueFd> fd = NewSocket();
  if (!fd.ok()) return fd.status();
  unlink(temporary.c_str());
  if (bind(fd->get(), reinterpret_cast<const sockaddr*>(&*made_at), sizeof *made_at) != 0)
    return Errno(absl::StrCat("cannot make the socket ", temporary));
  chmod(temporary.c_str(), 0600);
  if (listen(fd->get(), kBacklog) != 0) return Errno(absl::StrCat("cannot listen on ", path));
  if (rename(temporary.c_str(), path.c_str()) != 0)
    return Errno(absl::StrCat("cannot make the socket ", path));
  return fd;
}

absl::StatusOr<UniqueFd> ConnectTo(const std::string& path) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  absl::StatusOr<UniqueFd> fd = NewSocket();
  if (!fd.ok()) return fd.status();
  const timeval limit{kSendTimeoutUs / 1'000'000, 0};  // a full backlog must not hold us for ever
  setsockopt(fd->get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  int result = 0;
  do {
    result = connect(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return Errno(absl::StrCat("cannot connect to ", path));
  return fd;
}

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> ConnectedPair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) return Errno("socketpair");
  return std::pair<UniqueFd, UniqueFd>(UniqueFd(fds[0]), UniqueFd(fds[1]));
}

absl::StatusOr<UniqueFd> Accept(int listener) {
  UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid()) return Errno("accept");
  return fd;
}

absl::Status SendPacket(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  assert(bytes.size() <= kPacketBytesMax && fds.size() <= kPacketFdsMax);
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kPacketFdsMax * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  for (bool waited = false;;) {
    if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return absl::OkStatus();
    if (errno == EINTR) continue;
    if (errno != EAGAIN || waited) return Errno("send");
    waited = true;
    WaitFor(socket, POLLOUT, kSendTimeoutUs);
  }
}

absl::StatusOr<Packet> ReceivePacket(int socket, int64_t timeout_us) {
  if (timeout_us > 0 && !WaitFor(socket, POLLIN, timeout_us)) {
    return absl::DeadlineExceededError("no packet in time");
  }
  Packet packet;
  packet.bytes.resize(kPacketBytesMax);
  iovec part{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kPacketFdsMax * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  // When a peer closes with packets unread, the kernel reports ECONNRESET once before the packets
  // that the peer sent earlier. Those packets matter: the last packet of a worker names the session
  // that ended the worker.
  int resets = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
  if (got < 0) return Errno("receive");
  TakeDescriptors(&message, &packet.fds);
  if (got == 0) return absl::UnavailableError("the other side closed the connection");
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return absl::InvalidArgumentError("a packet is longer than any that Laneway sends");
  }
  packet.bytes.resize(static_cast<size_t>(got));
  return packet;
}

absl::StatusOr<Peer> PeerOf(int socket) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) {
    return Errno("cannot ask who connected");
  }
  return Peer{credentials.pid, credentials.uid};
}

absl::StatusOr<UniqueFd> OpenPidfd(pid_t pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.valid()) return Errno(absl::StrCat("cannot watch process ", pid));
  return fd;
}

absl::StatusOr<UniqueFd> PeerPidfd(int socket, const Peer& peer) {
  int fd = -1;
  socklen_t bytes = sizeof fd;
  if (getsockopt(socket, SOL_SOCKET, kGetPeerPidfd, &fd, &bytes) == 0) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return UniqueFd(fd);
  }
  absl::StatusOr<UniqueFd> pidfd = OpenPidfd(peer.pid);
  // An open connection now proves that the number was not given to another process before the open.
  pollfd entry{socket, 0, 0};
  if (pidfd.ok() && poll(&entry, 1, 0) > 0 && (entry.revents & POLLHUP) != 0) {
    return absl::UnavailableError("the program ended before it was served");
  }
  return pidfd;
}

bool ProcessEnded(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void PassOnly(int fd) {
  // dup2 clears close-on-exec, but does nothing when the number is the same.
  if (fd == kPassedFd) {
    fcntl(fd, F_SETFD, 0);
  } else {
    dup2(fd, kPassedFd);
  }
  close_range(kPassedFd + 1, ~0u, 0);
}

}  // namespace ipc
