// A listening socket in an event loop. When there is no descriptor for whoever connects, it stops
// listening for a moment: the connection stays in the queue, and a level-triggered loop would ask
// without end. Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "daemon/common/event_loop.h"
#include "ipc/unique_fd.h"

namespace common {

class Acceptor {
 public:
  static constexpr int64_t kPauseUs = 100'000;

  using OnConnection = std::function<void(ipc::UniqueFd)>;
  using OnFailure = std::function<void(const std::string& sentence)>;

  explicit Acceptor(EventLoop* loop) : loop_(loop) {}
  ~Acceptor() { Close(); }
  Acceptor(const Acceptor&) = delete;

  // `failed` is told once for each time that there is no descriptor, until there is one again.
  void Listen(ipc::UniqueFd listener, OnConnection connected, OnFailure failed);
  void Close();

 private:
  void Accept();

  EventLoop* const loop_;
  ipc::UniqueFd listener_;
  OnConnection connected_;
  OnFailure failed_;
  EventLoop::TimerId pause_ = 0;
  bool failing_ = false;
};

}  // namespace common
