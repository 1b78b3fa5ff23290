// The life of lanewayd itself. Tells the starter that lanewayd serves, or why not. Ends lanewayd on
// demand, and when no program has come for a while. Gives the exit code.
//
// Its stages: starting (the starter waits), serving, stopping (programs and children end), over.
// Thread safety: one thread, the loop's.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "daemon/common/event_loop.h"
#include "daemon/control/core.h"

namespace control {

class Lifetime {
 public:
  using OnReady = std::function<void(const std::string& failure)>;  // empty: ready
  using OnStop = std::function<void(const std::string& reason)>;

  // For programs that wait while lanewayd is told to end.
  static constexpr char kStoppedWhileWaiting[] =
      "Laneway was stopped while this program was waiting (laneway stop --force)";

  // `core` outlives this object. `on_ready` is called once. `on_stop` is called when lanewayd
  // begins to stop, before programs and children hear of it; `reason` is for commands that wait.
  Lifetime(Core* core, OnReady on_ready, OnStop on_stop);

  // True until the starter was told.
  bool starting() const { return on_ready_ != nullptr; }
  int exit_code() const { return exit_code_; }

  // A keeper or worker can't be started. While lanewayd starts, this is its end.
  void OnFailure(const std::string& sentence);
  // Tells the starter once a worker serves. Begins or ends to wait for programs.
  void Reconcile();
  // Ends lanewayd and all programs. Returns why it does not; empty: it does. `waiting`: so many
  // programs have said hello and have no session yet.
  std::string StopUnlessUsed(bool force, size_t waiting);
  // SIGTERM: with programs running, only this process ends. They go on, and the next daemon adopts
  // them.
  void OnTerminate(size_t waiting);
  // The keeper and all workers have ended.
  void OnAllStopped();

 private:
  void UpdateLinger();
  void Stop(const std::string& reason);
  void Quit();

  Core* const core_;
  OnReady on_ready_;
  const OnStop on_stop_;
  common::EventLoop::TimerId linger_timer_ = 0;
  bool had_run_ = false;  // a program of `laneway run` had not ended
  int exit_code_ = 0;
};

}  // namespace control
