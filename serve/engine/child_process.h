// An engine's process: a child of the front, with one end of a socket pair. The front's own
// environment is the child's, so it has the libraries that the front was started with.
//
// Thread safety: one thread, which outlives the child: the child asks the kernel to end with it.
#pragma once

#include <sys/types.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/loop/descriptor.h"

namespace serve::engine {

// The number of the child's end of the socket pair, and of the first descriptor that the front
// passes on besides.
constexpr int kEngineSocket = 3;
constexpr int kPassedDescriptor = 4;

// Two sockets that are connected, closed in programs that are started.
struct SocketPair {
  // `type`: SOCK_STREAM or SOCK_SEQPACKET.
  static absl::StatusOr<SocketPair> Make(int type);
  std::array<Descriptor, 2> ends;
};

class ChildProcess {
 public:
  // `command`: a program's path and its arguments. The child has `passed`, in this order, as
  // kPassedDescriptor and the numbers after it; the caller keeps its own.
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& command,
                                            std::span<const Descriptor> passed = {});
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ~ChildProcess();  // kills, and waits

  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }  // does not block
  int pidfd() const { return pidfd_.get(); }    // readable when the child has ended
  void Kill();
  // "was killed by signal 9", "ended with code 1". REQUIRES: pidfd() is readable.
  std::string Reap();

 private:
  ChildProcess() = default;

  pid_t pid_ = 0;  // 0: reaped
  Descriptor socket_;
  Descriptor pidfd_;
};

// The path of the running program; empty when /proc can't tell.
std::string OwnPath();

// For the child: it ends when the thread that started it does. REQUIRES: called at its start.
void EndWithParent();

}  // namespace serve::engine
