// Connections to lanewayd's socket whose hello has not come yet.
//
// A program says hello at once. So the oldest connection without a hello makes room for a new one,
// and each is dropped after kHelloTimeoutUs. Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "daemon/common/acceptor.h"
#include "daemon/common/event_loop.h"
#include "ipc/hello.h"
#include "ipc/socket.h"
#include "ipc/unique_fd.h"

namespace control {

class PendingHellos {
 public:
  static constexpr size_t kConnectionsMax = 128;
  static constexpr int64_t kHelloTimeoutUs = 10'000'000;

  // A hello that has passed every check, and the process that it comes from.
  using OnHello = std::function<void(const ipc::Hello& hello, const ipc::Peer& peer,
                                     ipc::UniqueFd socket, ipc::UniqueFd pidfd)>;

  // `loop` outlives this object.
  PendingHellos(common::EventLoop* loop, OnHello on_hello);

  // Binds the socket of the runtime directory.
  absl::Status Listen(const std::string& runtime_dir);
  // lanewayd ends: every hello is refused from now on.
  void Stop() { stopping_ = true; }
  size_t size() const { return pending_.size(); }
  // A program has connected.
  void Add(ipc::UniqueFd socket);

 private:
  struct Pending {
    ipc::UniqueFd socket;
    common::EventLoop::TimerId timer = 0;
    uint64_t number = 0;  // the oldest connection has the lowest
  };
  ipc::UniqueFd Remove(int fd);
  void OnReadable(int fd);

  common::EventLoop* const loop_;
  const OnHello on_hello_;
  common::Acceptor acceptor_;
  std::map<int, Pending> pending_;
  uint64_t added_ = 0;
  bool stopping_ = false;
};

}  // namespace control
