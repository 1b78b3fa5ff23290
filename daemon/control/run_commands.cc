#include "daemon/control/run_commands.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "daemon/control/status.h"
#include "ipc/job_options.h"
#include "ipc/socket.h"

namespace control {

std::vector<DeviceLoad> RunCommands::DeviceLoads() const {
  const ipc::control::KeeperReady& keeper = parts_.children->keeper().description;
  std::vector<DeviceLoad> loads(keeper.device_count);
  for (uint32_t i = 0; i < keeper.device_count; ++i)
    loads[i].used_bytes = keeper.devices[i].used_bytes;
  for (const std::pair<const uint64_t, Session>& entry : parts_.sessions->all()) {
    const ipc::control::SessionRecord& record = entry.second.record;
    // Of a job that was given devices, the job counts.
    if (record.job.scheduling.device_count == 0 && record.device < loads.size())
      ++loads[record.device].sessions;
  }
  for (const std::pair<const uint64_t, ipc::JobTerms>& entry : parts_.jobs->all()) {
    const ipc::JobTerms& job = entry.second;
    const uint32_t first = FirstDeviceOf(job.scheduling);
    const bool open = parts_.observers->history().IsOpen(job.number);
    if (job.scheduling.device_count != 0 && first < loads.size() && open) ++loads[first].sessions;
  }
  return loads;
}

std::string RunCommands::Begin(const Command& command) {
  const ipc::JobTicket shown = ipc::ParseTicketUntrusted(command.ticket).value_or(ipc::JobTicket());
  const std::optional<ipc::JobTerms> outer = parts_.jobs->Join(shown);
  ipc::JobTerms terms = outer.value_or(ipc::JobTerms());
  // A run without a limit does not change the limit of its job.
  if (command.bytes != 0) terms.memory_limit_bytes = command.bytes;
  uint64_t run = 0;
  if (!outer.has_value()) {
    terms.scheduling = command.scheduling;
    if (const absl::Status chosen = ChooseDevices(DeviceLoads(), &terms.scheduling); !chosen.ok())
      return ErrorJson(std::string(chosen.message()));
    terms = parts_.jobs->New(terms);
    run = terms.number;
  } else {
    run = parts_.jobs->NewNumber();  // its own in the history
    if (terms != *outer) parts_.job_commands->Change(terms);
  }
  absl::StatusOr<ipc::UniqueFd> process = ipc::OpenPidfd(static_cast<pid_t>(command.pid));
  if (command.pid != 0 && process.ok())
    parts_.observers->Launched(run, command.text, std::move(*process));
  return JobJson(run, parts_.jobs->TicketOf(terms), parts_.children->keeper().description.kind);
}

std::string RunCommands::Exited(const Command& command) {
  parts_.observers->Exited(command.id, static_cast<int>(std::min<uint64_t>(command.code, 255)));
  return OkJson();
}

}  // namespace control
