// What people see of a daemon, as JSON: the same bytes whenever nothing has changed (sorted, no
// clocks). Thread safety: stateless.
#pragma once

#include <deque>
#include <string>

#include "daemon/control/children.h"
#include "daemon/control/daemon.h"
#include "daemon/control/session_table.h"
#include "ipc/options.h"

namespace control {

struct StatusInput {
  const ipc::Options& options;
  const Children& children;
  const SessionTable& sessions;
  const std::deque<Fault>& faults;
};

// {"ok":true, "version", "daemon", "keeper", "workers", "devices", "jobs", "sessions", "faults"}.
std::string StatusJson(const StatusInput& input);

std::string OkJson();
std::string ErrorJson(const std::string& sentence);

// A request of the control plane: {"command":"status"} ...
struct Command {
  std::string name;
  bool force = false;
};

// False for anything that is not a JSON object with a command in it.
bool ParseCommandUntrusted(const std::string& text, Command* command);

// The number of a new job, and the kind of device that will serve it.
std::string JobJson(uint64_t job, ipc::control::DeviceKind kind);

}  // namespace control
