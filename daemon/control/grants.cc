#include "ipc/calls/vendor.h"

#include "daemon/control/grants.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/choose_devices.h"
#include "ipc/session_file.h"

namespace control {
namespace {

namespace wire = ipc::control;

constexpr uint32_t kOutOfMemory = CUDA_ERROR_OUT_OF_MEMORY;

// A figure that a client can write is cut to the size of the arena, so that no sum overflows.
int64_t Signed(uint64_t bytes) {
  return static_cast<int64_t>(std::min<uint64_t>(bytes, ipc::limits::kDeviceArenaBytes));
}

}  // namespace

Grants::Grants(const Parts& parts, int64_t iteration_max_s, std::function<int64_t()> now_us)
    : parts_(parts), iteration_max_s_(iteration_max_s), now_us_(std::move(now_us)) {}

scheduler::SessionArrived Grants::Describe(const Session& session) const {
  scheduler::SessionArrived arrived = ArrivedWith(session.record);
  arrived.fixed = !session.link->CanMakeRoom();
  if (const CommandProfile* const known =
          parts_.observers->history().KnownOf(session.record.session_id)) {
    arrived.estimate.iteration_us = known->needs.iteration_us;
    arrived.estimate.total_us = known->needs.total_us;
    if (session.link->CanMakeRoom()) {
      arrived.estimate.persistent_bytes = known->needs.persistent_bytes;
      arrived.estimate.ephemeral_bytes = known->needs.ephemeral_bytes;
    }
  }
  return arrived;
}

// --- reports -------------------------------------------------------------------------------------

// A new lanewayd hears a worker's reports even before the worker has listed its sessions. The list
// includes these reports: counted again, memory would be counted twice.
bool Grants::IsYetToBeListed(uint64_t id) const {
  return !parts_.scheduler->serving() && parts_.sessions->Find(id) == nullptr;
}

void Grants::NoteProgress(uint64_t id) {
  Session* const session = parts_.sessions->Find(id);
  if (session == nullptr || session->page.get() == nullptr || session->phase != Phase::kRunning)
    return;
  const ipc::Progress& progress = session->link->ProgressOf(*session);
  const uint64_t iterations = progress.iterations.load(std::memory_order_acquire);
  const uint64_t held_us = progress.held_us.load(std::memory_order_relaxed);
  const int64_t now_us = now_us_();
  const int64_t passed_us = now_us - std::exchange(session->progress_us, now_us);
  scheduler::Progress event;
  event.session = id;
  event.iterations = static_cast<int64_t>(
      std::min<uint64_t>(iterations - session->iterations_seen, static_cast<uint64_t>(passed_us)));
  event.busy_us = static_cast<int64_t>(
      std::min<uint64_t>(held_us - session->held_us_seen, static_cast<uint64_t>(passed_us)));
  session->iterations_seen = iterations;
  session->held_us_seen = held_us;
  if (event.iterations != 0 || event.busy_us != 0) parts_.scheduler->Apply(event);
}

// A session is counted on one device: the first of its job's (--gpus), or else the device of its
// first memory. Its lane is on that device. All its memory counts there, memory on other devices
// included.
bool Grants::NoteDevice(uint64_t id, uint32_t device, bool for_lane) {
  Session* const session = parts_.sessions->Find(id);
  if (session == nullptr) return true;
  device = session->link->DeviceMeant(*session, device);
  if (device == session->record.device) return true;
  if (device >= parts_.children->keeper().description.device_count) return true;
  parts_.scheduler->Apply(scheduler::SessionPlaced{id, device});
  const scheduler::Session* const known = parts_.scheduler->state().Find(id);
  if (known == nullptr) return true;
  if (known->about.device == device) {
    session->record.device = device;
    Send(*session, session->record);
    TellLane(*session);
    spdlog::info("session {} is on device {}", id, device);
    return true;
  }
  if (!std::exchange(session->on_several, true)) {
    spdlog::info(
        "session {} uses device {}, too: all its memory is counted on "
        "device {}",
        id, device, session->record.device);
  }
  if (!for_lane) return true;
  // The lane is on the other device. On this device the session's temporary memory is its own.
  session->asks_lane = false;
  Send(*session, wire::AssignLane{id, session->lane, session->lane_bytes, session->record.device,
                                  CUDA_ERROR_NOT_SUPPORTED, 1});
  return false;
}

// A worker has passed the lane on by itself (daemon/worker/gate.h), and reports it afterwards.
void Grants::OnReport(uint32_t worker, const wire::Switched& switched) {
  spdlog::debug("lane {} went from session {} to {}", switched.lane, switched.from, switched.to);
  if (IsYetToBeListed(switched.from)) return;
  // Another worker may have granted the session its lane again by now.
  const Session* const from = parts_.sessions->Find(switched.from);
  if (from != nullptr && from->worker != worker) return;
  NoteProgress(switched.from);
  parts_.observers->Note({.kind = EventKind::kSwitch,
                          .at_us = std::min(switched.at_us, now_us_()),
                          .session = switched.from,
                          .lane = switched.lane,
                          .other = switched.to});
  parts_.scheduler->Apply(scheduler::Switched{static_cast<scheduler::LaneId>(switched.lane),
                                              switched.from, switched.to});
}

void Grants::OnReport(const wire::GateReport& report) {
  Session* const session = parts_.sessions->Find(report.session_id);
  if (session == nullptr || session->phase != Phase::kRunning) return;
  spdlog::debug("session {} reports {}", report.session_id, static_cast<uint32_t>(report.event));
  if (report.event == wire::GateEvent::kRunnable) {
    parts_.scheduler->Apply(scheduler::Runnable{report.session_id});
    return;
  }
  NoteProgress(report.session_id);
  parts_.scheduler->Apply(
      scheduler::Idle{report.session_id, report.event == wire::GateEvent::kIdle});
}

void Grants::OnReport(const wire::MemoryNeeded& needed) {
  spdlog::debug("session {} needs {} bytes", needed.session_id, needed.bytes);
  if (IsYetToBeListed(needed.session_id)) return;
  (void)NoteDevice(needed.session_id, static_cast<uint32_t>(needed.device), false);
  parts_.scheduler->Apply(scheduler::MemoryNeeded{needed.session_id, Signed(needed.bytes)});
}

void Grants::OnReport(const wire::MemoryIfFree& wanted) {
  spdlog::debug("session {} could use {} bytes", wanted.session_id, wanted.bytes);
  if (IsYetToBeListed(wanted.session_id)) return;
  parts_.scheduler->Apply(
      scheduler::MemoryNeeded{wanted.session_id, Signed(wanted.bytes), /*waits=*/false});
}

void Grants::OnReport(const wire::MemoryFreed& freed) {
  if (IsYetToBeListed(freed.session_id)) return;
  parts_.scheduler->Apply(scheduler::MemoryFreed{freed.session_id, Signed(freed.bytes)});
  if (const Session* const session = parts_.sessions->Find(freed.session_id))
    session->link->OnMemoryCounted(*session);
}

// No bytes: the session gives its lane back, which is possible whichever device it is on.
void Grants::OnReport(const wire::LaneNeeded& needed) {
  if (IsYetToBeListed(needed.session_id)) return;
  if (Session* const session = parts_.sessions->Find(needed.session_id)) session->asks_lane = true;
  const bool gives_back = needed.bytes == 0;
  const bool possible = NoteDevice(needed.session_id, static_cast<uint32_t>(needed.device), true);
  if (!possible && !gives_back) return;
  parts_.scheduler->Apply(scheduler::LaneNeeded{needed.session_id, Signed(needed.bytes)});
}

void Grants::OnReport(const wire::Swapped& swapped) {
  if (IsYetToBeListed(swapped.session_id)) return;
  const bool out = swapped.out != 0;
  parts_.observers->Note(
      {.kind = out ? EventKind::kSwapOut : EventKind::kSwapIn, .session = swapped.session_id});
  spdlog::debug("session {} is {} ({}) {}", swapped.session_id, out ? "out" : "in", swapped.result,
                swapped.sentence);
  if (Session* const session = parts_.sessions->Find(swapped.session_id)) session->swap.reset();
  parts_.scheduler->Apply(
      scheduler::Swapped{swapped.session_id, out, swapped.result == 0, swapped.sentence});
}

void Grants::Adopt(const Session& session) {
  const wire::SessionRecord& record = session.record;
  scheduler::SessionAdopted adopted;
  adopted.arrived = Describe(session);
  adopted.persistent_bytes = Signed(record.persistent_bytes);
  adopted.ephemeral_bytes = Signed(record.lane_bytes);
  adopted.lane = static_cast<scheduler::LaneId>(record.lane);
  adopted.lane_bytes = Signed(record.lane_bytes);
  adopted.granted = ipc::HoldsLane(record.turn);
  adopted.revoked = record.turn == ipc::Turn::kRevoked || record.turn == ipc::Turn::kDraining;
  adopted.place = record.place;
  adopted.pause = record.pause;
  parts_.scheduler->Apply(adopted);
  // The holder of a lane is known only when all sessions have been adopted: until then this is
  // held.
  if (record.wants != 0) parts_.scheduler->Apply(scheduler::Runnable{record.session_id});
}

// First it has no work. The move may end an order to go to the host, and the session would be
// granted its lane then, while no worker has it that could be told. A grant may be on its way to
// the worker, which can be lost before it gives the lane back.
void Grants::OnReleased(const Session& session) {
  const uint64_t id = session.record.session_id;
  const scheduler::LaneId lane = static_cast<scheduler::LaneId>(session.lane);
  parts_.scheduler->Apply(scheduler::Idle{id, true});
  parts_.scheduler->Apply(scheduler::Switched{lane, id, 0});
}

// The sessions of a lost worker run nowhere until another worker takes them over. All of them go
// idle before any of them leaves its lane: otherwise a free lane would be granted to a session that
// no worker can tell.
void Grants::OnWorkerLost(uint32_t worker) {
  std::vector<uint64_t> concerned;
  for (const std::pair<const uint64_t, Session>& entry : parts_.sessions->all()) {
    if (entry.second.worker == worker && entry.second.phase == Phase::kRunning)
      concerned.push_back(entry.first);
  }
  for (const uint64_t id : concerned) parts_.scheduler->Apply(scheduler::Idle{id, true});
  for (const uint64_t id : concerned) {
    const Session* const session = parts_.sessions->Find(id);
    if (session == nullptr) continue;
    parts_.scheduler->Apply(
        scheduler::Switched{static_cast<scheduler::LaneId>(session->lane), id, 0});
  }
}

// --- actions of the scheduler --------------------------------------------------------------------

void Grants::TellLane(const Session& session) {
  if (session.lane == 0) return;
  parts_.lanes->TellShared();
  Send(session, wire::AssignLane{session.record.session_id, session.lane, session.lane_bytes,
                                 session.record.device, 0, 0});
}

// A session that asked for lane memory while no lanewayd was there took a lane of its own. Its
// bytes count in the lane that the session was adopted with, so it has to go there.
void Grants::TellAdoptedLanes() {
  for (const std::pair<const uint64_t, Session>& entry : parts_.sessions->all()) {
    const scheduler::Session* const known = parts_.scheduler->state().Find(entry.first);
    if (known != nullptr && known->lane != 0) TellLane(entry.second);
  }
}

void Grants::Execute(const scheduler::AssignLane& assign) {
  Session* const session = parts_.sessions->Find(assign.session);
  if (session == nullptr) return;
  session->lane = assign.lane;
  session->lane_bytes = static_cast<uint64_t>(assign.bytes);
  parts_.lanes->AddGuest(assign.lane, assign.session);
  if (assign.answer) {
    session->asks_lane = false;
    session->refusal.clear();
  }
  spdlog::debug("session {} is in lane {} of {} bytes", assign.session, assign.lane, assign.bytes);
  // Sent before the lane: without lanewayd a worker opens a lane that is not known to be shared.
  parts_.lanes->TellShared();
  Send(*session, wire::AssignLane{assign.session, session->lane, session->lane_bytes,
                                  session->record.device, 0, assign.answer ? 1u : 0u});
  parts_.observers->Note({.kind = EventKind::kLane,
                          .session = assign.session,
                          .lane = assign.lane,
                          .bytes = static_cast<uint64_t>(assign.bytes)});
}

void Grants::Execute(const scheduler::RefuseMemory& refusal) {
  Session* const session = parts_.sessions->Find(refusal.session);
  if (session == nullptr) return;
  if (!refusal.waited) return Send(*session, wire::MemoryAnswer{refusal.session, kOutOfMemory});
  spdlog::info("session {} gets no more memory: {}", refusal.session, refusal.reason);
  session->refusal = refusal.reason;
  if (std::exchange(session->asks_lane, false)) {
    Send(*session, wire::AssignLane{refusal.session, session->lane, session->lane_bytes,
                                    session->record.device, kOutOfMemory, 1});
  } else {
    Send(*session, wire::MemoryAnswer{refusal.session, kOutOfMemory});
  }
}

void Grants::Execute(const scheduler::Report& report) {
  Session* const session = parts_.sessions->Find(report.session);
  if (session == nullptr) return;
  const std::string text = absl::StrCat("came to no boundary for ", report.overstay_us / 1'000'000,
                                        " s after it was to leave lane ", report.lane);
  spdlog::warn("session {} ({}) {}", report.session, session->record.program, text);
  parts_.observers->AddFault(
      {report.session, session->record.job.number, session->record.program, 0, text});
  if (iteration_max_s_ == 0 || !RunsInWorker(*session)) return;
  ipc::MarkLost(session->page.get(), CUDA_ERROR_MPS_RPC_FAILURE,
                absl::StrCat("laneway: it ", text, ", and --max-iteration allows no more").c_str());
  Send(*session, wire::DetachSession{report.session});  // the page is the client's, too
  parts_.lifecycle->Transition(session, Phase::kEnding);
}

// A session without a worker can be ordered to the device, by its next worker, but not to the host.
void Grants::Swap(const wire::Swap& swap) {
  Session* const session = parts_.sessions->Find(swap.session_id);
  if (session == nullptr) return;
  spdlog::debug("session {} {} the host", swap.session_id, swap.out != 0 ? "goes to" : "leaves");
  const bool between = session->phase == Phase::kMoving || session->phase == Phase::kEntering;
  if (session->phase != Phase::kRunning && (swap.out != 0 || !between)) {
    parts_.scheduler->Apply(
        scheduler::Swapped{swap.session_id, swap.out != 0, false, "no worker has it now"});
    return;
  }
  session->swap = swap;  // between two workers, the next one is asked
  Send(*session, swap);
}

void Grants::Execute(const scheduler::Grant& grant) {
  const Session* const session = parts_.sessions->Find(grant.session);
  if (session == nullptr) return;
  spdlog::debug("session {} may use lane {}", grant.session, grant.lane);
  Send(*session, wire::Grant{grant.session, grant.lane});
  parts_.observers->Note({.kind = EventKind::kGrant,
                          .session = grant.session,
                          .job = session->record.job.number,
                          .lane = grant.lane});
}

void Grants::Execute(const scheduler::Revoke& revoke) {
  const Session* const session = parts_.sessions->Find(revoke.session);
  if (session == nullptr) return;
  spdlog::debug("session {} is to leave lane {}", revoke.session, revoke.lane);
  Send(*session, wire::Revoke{revoke.session});
  parts_.observers->Note({.kind = EventKind::kRevoke,
                          .session = revoke.session,
                          .job = session->record.job.number,
                          .lane = revoke.lane});
}

void Grants::Execute(const scheduler::GrantMemory& memory) {
  spdlog::debug("session {} gets {} bytes", memory.session, memory.bytes);
  Session* const session = parts_.sessions->Find(memory.session);
  if (session == nullptr) return;
  session->refusal.clear();
  session->link->OnMemoryCounted(*session);
  Send(*session, wire::MemoryAnswer{memory.session, 0});
}

void Grants::Execute(const scheduler::Wait& wait) {
  spdlog::info("session {} {}", wait.session, wait.reason);
}

}  // namespace control
