// What people see of a daemon, as JSON: the same bytes whenever nothing has changed (sorted, no
// clocks). Thread safety: stateless.
#pragma once

#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "daemon/control/children.h"
#include "daemon/control/observers.h"
#include "daemon/control/session_table.h"
#include "ipc/options.h"

namespace control {

struct StatusInput {
  const ipc::Options& options;
  const char* policy;
  const Children& children;
  const SessionTable& sessions;
  const std::deque<Fault>& faults;
};

// {"ok":true, "version", "daemon", "keeper", "workers", "devices", "jobs", "sessions", "faults"}.
std::string StatusJson(const StatusInput& input);

std::string OkJson();
std::string ErrorJson(const std::string& sentence);

// The number of a run, the ticket of the job that it is or is a part of, the kind of device that
// will serve it, and which devices it may use (none named: all).
std::string JobJson(uint64_t run, const ipc::JobTicket& ticket, ipc::control::DeviceKind kind);

// Texts of programs may be in any encoding; what is not UTF-8 is replaced, never thrown over.
std::string DumpJson(const nlohmann::ordered_json& json);

}  // namespace control
