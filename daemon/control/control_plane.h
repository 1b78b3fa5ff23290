// People's side of lanewayd: the commands of `laneway`, with their handlers, and the page of
// metrics.
//
// Thread safety: one thread, the loop's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/control/call_traces.h"
#include "daemon/control/command_server.h"
#include "daemon/control/core.h"
#include "daemon/control/http.h"
#include "daemon/control/job_commands.h"
#include "daemon/control/run_commands.h"
#include "daemon/control/upgrade_command.h"
#include "daemon/control/views.h"

namespace control {

class ControlPlane {
 public:
  // The parts of a command that concern lanewayd as a whole.
  class Host {
   public:
    virtual ~Host() = default;
    // Ends lanewayd and all programs. Returns why it does not; empty: it does.
    virtual std::string OnStopAsked(bool force) = 0;
  };

  // Core and host outlive this object.
  ControlPlane(Core* core, Host* host);

  // Listens at the runtime directory's endpoint, and at the port for metrics when there is one.
  absl::Status Listen();
  // lanewayd serves: runs that began before are answered.
  void OnServing();
  // lanewayd will not serve. `sentence`: why.
  void OnFailure(const std::string& sentence);
  // As if `peer` had sent the command.
  void Do(const std::string& peer, const Command& command) { commands_.Do(peer, command); }
  // Answers the commands that asked for the end.
  void OnStopped();
  UpgradeCommand& upgrade() { return upgrade_; }

 private:
  void SetUpViews();
  void SetUpChanges();
  void BeginRun(const std::string& peer, const Command& command);

  Core* const core_;
  Host* const host_;
  CommandServer commands_;
  JobCommands job_commands_;
  RunCommands run_commands_;
  Views views_;
  CallTraces call_traces_;
  UpgradeCommand upgrade_;
  MetricsServer metrics_;
  std::vector<std::string> stop_waiters_;  // peers
  std::vector<std::pair<std::string, Command>> waiting_runs_;
};

}  // namespace control
