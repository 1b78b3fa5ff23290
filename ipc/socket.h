// Packets with descriptors over AF_UNIX SOCK_SEQPACKET: how hello, control messages and extents
// travel between processes of one machine.
//
// Every descriptor made here is close-on-exec and no call raises SIGPIPE. A packet arrives whole or
// not at all, so a lying peer can harm only its own connection. Thread safety: functions without
// state; sending and receiving on one socket from two threads is fine.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipc/unique_fd.h"

namespace ipc {

inline constexpr size_t kPacketBytesMax = 64u << 10;
inline constexpr size_t kPacketFdsMax = 4;
inline constexpr int64_t kSendTimeoutUs =
    2'000'000;  // a peer that reads nothing for so long is broken

struct Packet {
  std::vector<std::byte> bytes;
  std::vector<UniqueFd> fds;
};

// The process at the other end, as the kernel saw it when the connection was made.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
};

// Replaces a socket file that a dead process left. The file appears by a rename once it can be
// connected to, so the rename is an event for processes that watch the directory. REQUIRES: the
// caller holds the lock that makes it the only listener. InvalidArgument when the path is longer
// than a socket address takes.
absl::StatusOr<UniqueFd> ListenAt(const std::string& path);

// NotFound: no such socket. Unavailable: a socket that nobody listens on (a dead process left it).
// PermissionDenied: not ours to use.
absl::StatusOr<UniqueFd> ConnectTo(const std::string& path);

// A connected pair, for a parent and the child it starts.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> ConnectedPair();

absl::StatusOr<UniqueFd> Accept(int listener);

// Waits at most kSendTimeoutUs for room. Unavailable: the peer is gone.
absl::Status SendPacket(int socket, std::span<const std::byte> bytes,
                        std::span<const int> fds = {});

// The next packet. DeadlineExceeded: none within timeout_us (0: none waits). Unavailable: end of
// file, and everything that the peer sent before has been received. InvalidArgument: longer than
// kPacketBytesMax, or more than kPacketFdsMax descriptors.
absl::StatusOr<Packet> ReceivePacket(int socket, int64_t timeout_us);

absl::StatusOr<Peer> PeerOf(int socket);

// A pidfd for the process at the other end.
absl::StatusOr<UniqueFd> PeerPidfd(int socket, const Peer& peer);

absl::StatusOr<UniqueFd> OpenPidfd(pid_t pid);

// True when the process of this pidfd has ended.
bool ProcessEnded(int pidfd);

// Raises the limit of open descriptors to the hard limit: extents, session files and pidfds are
// many.
void RaiseDescriptorLimit();

// Between fork and exec, where only little is safe: the program gets the standard streams and `fd`
// as kPassedFd. Nothing else: neither what a library of ours opened without close-on-exec, nor what
// we were given (a lock of a script that a daemon held would outlive the script).
inline constexpr int kPassedFd = 3;
void PassOnly(int fd);

}  // namespace ipc
