// Keeps an engine running: starts its processes, one for each stage, and moves frames. When one
// process was lost, the supervisor starts all of them again, after a wait that grows while engines
// compute nothing (backoff.h). Before an engine starts, all processes of the lost one must have
// ended: by then their memory on the devices is free.
//
// Stages that follow each other are connected (Orca, section 4.3.1: data does not go by way of the
// front): stage i has a socket to stage i - 1 and another one to stage i + 1, in this order from
// kPassedDescriptor on. They keep the borders of messages (SOCK_SEQPACKET).
// Thread safety: the loop's thread alone. Ownership: loop and client outlive the supervisor, whose
// end kills the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "serve/engine/backoff.h"
#include "serve/engine/engine_process.h"
#include "serve/engine/frames.h"
#include "serve/loop/event_loop.h"

namespace serve::engine {

class Supervisor final : private EngineProcess::Client {
 public:
  class Client {
   public:
    virtual ~Client() = default;
    // New processes, which have been told nothing yet.
    virtual void OnEngineStarted() = 0;
    virtual void OnFrameUntrusted(size_t stage, const Bytes& body) = 0;
    // Of every engine that OnEngineStarted has told, once, and of each that could not be started.
    // `why` is a sentence.
    virtual void OnEngineLost(const std::string& why) = 0;
  };

  // `command`: the program and arguments of each stage. REQUIRES: stages > 0.
  Supervisor(EventLoop* loop, std::vector<std::string> command, size_t stages, Client* client)
      : loop_(*loop), command_(std::move(command)), stages_(stages), client_(*client) {}
  ~Supervisor() override;
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Starts the first engine.
  void Start();
  // Neither calls the client. Ignored without an engine.
  void Send(size_t stage, std::span<const std::byte> body);
  void SendToAll(std::span<const std::byte> body);
  // The engine has said why it fails, or talks nonsense: it is ended, and lost for this reason.
  // May be called by the client from OnFrameUntrusted.
  void GiveUp(const std::string& why);
  // The engine has computed something.
  void OnEngineWorks() { backoff_.Reset(); }
  size_t stages() const { return stages_; }
  // Of each stage; empty: none runs.
  std::vector<pid_t> pids() const;

 private:
  absl::Status StartProcesses();
  void StartAgainLater();
  void OnFrameUntrusted(size_t number, const Bytes& body) override;
  void OnSilent(size_t number, const std::string& why) override;
  void OnEnded(size_t number, const std::string& how) override;

  EventLoop& loop_;
  const std::vector<std::string> command_;
  const size_t stages_;
  Client& client_;
  Backoff backoff_;
  std::vector<std::unique_ptr<EngineProcess>> processes_;
  size_t ended_ = 0;  // of these
  std::string why_;   // the engine is lost
  EventLoop::TimerId timer_ = 0;
};

}  // namespace serve::engine
