// The status of a daemon for people, as JSON: the same bytes whenever nothing has changed (sorted,
// no clocks). Thread safety: stateless.
#pragma once

#include <cstdint>
#include <map>
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
  const Observers& observers;
};

// {"ok":true, "version", "daemon", "keeper", "workers", "devices", "jobs", "sessions", "faults"}.
std::string StatusJson(const StatusInput& input);

// Device memory by session, over all devices: the keeper's extents of the session, and its arrays,
// which the driver has made in the worker.
std::map<uint64_t, uint64_t> DeviceBytes(const KeeperState& keeper, const SessionTable& sessions);

const char* NameOf(ipc::control::DeviceKind kind);  // "cuda" or "soft"

std::string OkJson();
std::string ErrorJson(const std::string& sentence);

// The answer to a run that begins: its number, its job's ticket, and the kind of device. The terms
// in the ticket name the devices that the job may use; none named: all.
std::string JobJson(uint64_t run, const ipc::JobTicket& ticket, ipc::control::DeviceKind kind);

// Texts of programs may be in any encoding: bytes that are not UTF-8 are replaced.
std::string DumpJson(const nlohmann::ordered_json& json);

}  // namespace control
