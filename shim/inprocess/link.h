// The program's connection to lanewayd: the hello's socket, on which both speak about this one
// session (ipc/control.h). One thread reads the socket. When the socket has ended, the thread says
// hello again: the daemon has died, or the program has closed every descriptor.
//
// Thread safety: Tell() from any thread; the rest as it says.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>

#include "base/mutex.h"
#include "ipc/control.h"
#include "ipc/session_file.h"
#include "ipc/unique_fd.h"
#include "shim/hello_client.h"

namespace shim::inprocess {

class Link {
 public:
  struct Hooks {
    // A hello begins; returns the device memory that it tells of. `up` or `down` follows.
    std::function<uint64_t()> hello;
    std::function<void(uint64_t session_id, ipc::SessionPage* page)> up;  // there is a daemon
    std::function<void()> down;  // there is none, or it has not taken the hello
    std::function<void(const ipc::control::DaemonToProgram&)> message;
  };
  explicit Link(Hooks hooks) : hooks_(std::move(hooks)) {}
  Link(const Link&) = delete;

  // Says hello and starts the thread. False: *error says why. Once.
  bool Start(ConnectError* error);

  // Dropped when there is no daemon.
  void Tell(const ipc::control::ProgramToDaemon& message);

  uint64_t session_id() const { return session_id_.load(std::memory_order_relaxed); }
  bool there() const { return there_.load(std::memory_order_acquire); }

 private:
  bool Connect(ConnectError* error);
  bool Greet(ConnectError* error);
  void Serve();
  bool Ours() const;

  const Hooks hooks_;
  std::atomic<uint64_t> session_id_{0};
  ipc::Mac seal_ = {};  // of Welcome; used by whoever connects: one thread at a time
  std::atomic<bool> there_{false};
  mutable base::Mutex mutex_;
  // Written under the mutex by the link's own thread alone, which reads them without it. inode_ is
  // that of socket_: the program may have closed socket_ and opened something else.
  ipc::UniqueFd socket_;
  ino_t inode_ = 0;
};

}  // namespace shim::inprocess
