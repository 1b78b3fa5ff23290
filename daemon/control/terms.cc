// On which terms sessions run (jobs.h), on which device they are counted, and how people change
// that while they run.
//
// A session is counted on one device: the first of its job's (--gpus), or else where its first
// memory is. There its lane is, and all its memory is counted there, also what it has on others.
#include "ipc/calls/vendor.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/command.h"
#include "daemon/control/daemon.h"
#include "daemon/control/status.h"

namespace control {
namespace {

namespace wire = ipc::control;

}  // namespace

// One daemon serves one user: whoever it runs as.
void Daemon::TellQuotas() {
  scheduler::UserChanged user;
  user.user = geteuid();
  user.memory_bytes = ipc::BytesOption(options_.user_memory, 0);
  user.sessions_max = static_cast<uint32_t>(options_.user_sessions);
  scheduler_.Apply(user);
}

std::vector<DeviceLoad> Daemon::DeviceLoads() const {
  const wire::KeeperReady& keeper = children_->keeper().description;
  std::vector<DeviceLoad> loads(keeper.device_count);
  for (uint32_t i = 0; i < keeper.device_count; ++i)
    loads[i].used_bytes = keeper.devices[i].used_bytes;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    const wire::SessionRecord& record = entry.second.record;
    // Of a job that was given devices, the job counts.
    if (record.job.scheduling.device_count == 0 && record.device < loads.size())
      ++loads[record.device].sessions;
  }
  for (const std::pair<const uint64_t, ipc::JobTerms>& entry : jobs_.all()) {
    const ipc::JobTerms& job = entry.second;
    const uint32_t first = FirstDeviceOf(job.scheduling);
    if (job.scheduling.device_count != 0 && first < loads.size() &&
        observers_.history().IsOpen(job.number))
      ++loads[first].sessions;
  }
  return loads;
}

uint32_t Daemon::DeviceSeenAs(const Session& session, uint32_t seen) const {
  const ipc::SchedulingTerms& terms = session.record.job.scheduling;
  return seen < terms.device_count ? terms.devices[seen] : seen;
}

bool Daemon::NoteDevice(uint64_t id, uint32_t device, bool for_lane) {
  Session* const session = sessions_.Find(id);
  if (session == nullptr) return true;
  // A program in a context of its own counts devices as it sees them; a worker as they are.
  if (session->in_process) device = DeviceSeenAs(*session, device);
  if (device == session->record.device) return true;
  if (device >= children_->keeper().description.device_count) return true;
  scheduler_.Apply(scheduler::SessionPlaced{id, device});
  const scheduler::Session* const known = scheduler_.state().Find(id);
  if (known == nullptr) return true;
  if (known->about.device == device) {
    session->record.device = device;
    SendTo(*session, session->record);
    TellLane(*session);
    spdlog::info("session {} is on device {}", id, device);
    return true;
  }
  if (!std::exchange(session->on_several, true)) {
    spdlog::info("session {} uses device {}, too: all its memory is counted on device {}", id,
                 device, session->record.device);
  }
  if (!for_lane) return true;
  // Its lane is on the other device: here its temporary memory is its own.
  session->asks_lane = false;
  SendTo(*session, wire::AssignLane{id, session->lane, session->lane_bytes, session->record.device,
                                    CUDA_ERROR_NOT_SUPPORTED, 1});
  return false;
}

void Daemon::TellTerms(uint64_t id, const ipc::SchedulingTerms& terms) {
  Steer(id, EventKind::kTerms,
        scheduler::TermsChanged{id, terms.priority, terms.weight,
                                static_cast<int64_t>(terms.deadline_us)},
        absl::StrCat("priority ", terms.priority, ", weight ", terms.weight));
}

// share, priority. A job whose first session is yet to come has its new terms then.
void Daemon::AnswerTerms(const std::string& peer, const Command& command) {
  const bool share = command.name == "share";
  const std::optional<ipc::JobTerms> begun = jobs_.Find(command.id);
  const bool waited_for = begun.has_value() && observers_.history().IsOpen(command.id);
  std::vector<uint64_t> ids = SessionsOf(command.id);
  if (ids.empty() && !waited_for) {
    (void)SessionsToSteer(peer, command.id);  // says why not
    return;
  }
  ipc::JobTerms terms = begun.has_value() ? *begun : sessions_.Find(ids[0])->record.job;
  const uint32_t value = static_cast<uint32_t>(std::min<uint64_t>(command.value, UINT32_MAX));
  (share ? terms.scheduling.weight : terms.scheduling.priority) = value;
  if (!ipc::SanitizeTerms(&terms.scheduling)) {
    control_.Reply(peer, ErrorJson(share ? absl::StrCat("a weight is 1 to ", ipc::kWeightMax)
                                         : absl::StrCat("a priority is 0 (most urgent) to ",
                                                        ipc::kPriorityMax)));
    return;
  }
  ChangeJob(terms);
  control_.Reply(peer, OkJson());
}

}  // namespace control
