// One process of an engine as its front sees it: frames go both ways until the process ends.
//
// Thread safety: the loop's thread alone. Ownership: loop and client outlive the process; its
// destructor kills the process and calls no client.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/engine/child_process.h"
#include "serve/engine/frames.h"
#include "serve/loop/event_loop.h"

namespace serve::engine {

class EngineProcess {
 public:
  class Client {
   public:
    virtual ~Client() = default;
    virtual void OnFrameUntrusted(size_t number, const Bytes& body) = 0;
    // The process sends no frames of the protocol, or none any more although it runs.
    virtual void OnSilent(size_t number, const std::string& why) = 0;
    // The last call, which may destroy the process object: "was killed by signal 9".
    virtual void OnEnded(size_t number, const std::string& how) = 0;
  };

  // `number`: what the client calls the process. `passed`: see ChildProcess::Start.
  static absl::StatusOr<std::unique_ptr<EngineProcess>> Start(
      EventLoop* loop, const std::vector<std::string>& command, std::span<const Descriptor> passed,
      size_t number, Client* client);
  ~EngineProcess();
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;

  // Never calls the client. Ignored when nothing is read any more.
  void Send(std::span<const std::byte> body);
  // The process is ended; OnEnded comes when it has ended, OnFrameUntrusted never again.
  void GiveUp();
  pid_t pid() const { return child_.pid(); }

 private:
  EngineProcess(EventLoop* loop, ChildProcess child, size_t number, Client* client);
  void WatchSocket();
  void OnSocket(short seen);
  void ReadSocket();
  void WriteSocket();
  void OnPidfd();

  EventLoop& loop_;
  ChildProcess child_;
  const size_t number_;
  Client& client_;
  bool connected_ = true;  // the socket is read
  FrameReader reader_;
  Bytes unsent_;
};

}  // namespace serve::engine
