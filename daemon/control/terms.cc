// What lanewayd's user may have, and on which device sessions are counted.
//
// A session is counted on one device: the first of its job's (--gpus), or else where its first
// memory is. There its lane is, and all its memory is counted there, also what it has on others.
#include "ipc/calls/vendor.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/control/daemon.h"

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

}  // namespace control
