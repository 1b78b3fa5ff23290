// Lanes and grants: what the scheduler decides about them goes to the workers as messages, what the
// workers report comes back as events. No message per iteration: how far sessions are stands in
// their pages, and is read when something happens.
#include "ipc/calls/vendor.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/daemon.h"

namespace control {
namespace {

namespace wire = ipc::control;

constexpr uint32_t kOutOfMemory = CUDA_ERROR_OUT_OF_MEMORY;

// What a worker counts is bounded by what can be: no client's page makes a sum run away.
int64_t Signed(uint64_t bytes) {
  return static_cast<int64_t>(std::min<uint64_t>(bytes, ipc::limits::kDeviceArenaBytes));
}

}  // namespace

scheduler::SessionArrived Daemon::Describe(const Session& session) const {
  scheduler::SessionArrived arrived = ArrivedWith(session.record);
  arrived.fixed = session.in_process;
  if (const LearnedCommand* const known = observers_.history().KnownOf(session.record.session_id)) {
    arrived.estimate.iteration_us = known->needs.iteration_us;
    arrived.estimate.total_us = known->needs.total_us;
    if (!session.in_process) {  // which has no lane, and never makes room for who needs it more
      arrived.estimate.persistent_bytes = known->needs.persistent_bytes;
      arrived.estimate.ephemeral_bytes = known->needs.ephemeral_bytes;
    }
  }
  return arrived;
}

void Daemon::BeforeEvent() { lanes_.TellAlone(); }

void Daemon::BeforeTimer() {
  for (const uint64_t id : sessions_.Ids()) NoteProgress(id);
}

void Daemon::TellCapacity() {
  const wire::KeeperReady& keeper = children_->keeper().description;
  for (uint32_t i = 0; i < keeper.device_count; ++i) {
    scheduler::CapacityChanged capacity;
    capacity.device = i;
    capacity.capacity_bytes = static_cast<int64_t>(keeper.devices[i].capacity_bytes);
    scheduler_.Apply(capacity);
  }
  TellQuotas();
}

// --- what workers say ----------------------------------------------------------------------------

void Daemon::NoteProgress(uint64_t id) {
  Session* const session = sessions_.Find(id);
  if (session == nullptr || session->page.get() == nullptr || session->phase != Phase::kRunning)
    return;
  const ipc::Progress& progress = ProgressOf(*session);
  const uint64_t iterations = progress.iterations.load(std::memory_order_acquire);
  const uint64_t held_us = progress.held_us.load(std::memory_order_relaxed);
  const int64_t now_us = NowUs();
  const int64_t passed_us = now_us - std::exchange(session->progress_us, now_us);
  scheduler::Progress event;
  event.session = id;
  event.iterations = static_cast<int64_t>(
      std::min<uint64_t>(iterations - session->iterations_seen, static_cast<uint64_t>(passed_us)));
  event.busy_us = static_cast<int64_t>(
      std::min<uint64_t>(held_us - session->held_us_seen, static_cast<uint64_t>(passed_us)));
  session->iterations_seen = iterations;
  session->held_us_seen = held_us;
  if (event.iterations != 0 || event.busy_us != 0) scheduler_.Apply(event);
}

void Daemon::RecordSwitch(const wire::Switched& switched) {
  spdlog::debug("lane {} went from session {} to {}", switched.lane, switched.from, switched.to);
  NoteProgress(switched.from);
  observers_.Note({.kind = EventKind::kSwitch,
                   .at_us = std::min(switched.at_us, NowUs()),
                   .session = switched.from,
                   .lane = switched.lane,
                   .other = switched.to});
  scheduler_.Apply(scheduler::Switched{static_cast<scheduler::LaneId>(switched.lane), switched.from,
                                       switched.to});
}

void Daemon::ApplyGateReport(const wire::GateReport& report) {
  Session* const session = sessions_.Find(report.session_id);
  if (session == nullptr || session->phase != Phase::kRunning) return;
  spdlog::debug("session {} reports {}", report.session_id, static_cast<uint32_t>(report.event));
  if (report.event == wire::GateEvent::kRunnable) {
    scheduler_.ApplyWhenServing(scheduler::Runnable{report.session_id});
    return;
  }
  NoteProgress(report.session_id);
  scheduler_.ApplyWhenServing(
      scheduler::Idle{report.session_id, report.event == wire::GateEvent::kIdle});
}

void Daemon::RequestMemory(const wire::MemoryNeeded& needed) {
  spdlog::debug("session {} needs {} bytes", needed.session_id, needed.bytes);
  (void)NoteDevice(needed.session_id, static_cast<uint32_t>(needed.device), false);
  scheduler_.ApplyWhenServing(scheduler::MemoryNeeded{needed.session_id, Signed(needed.bytes)});
}

void Daemon::TakeMemoryBack(const wire::MemoryFreed& freed) {
  scheduler_.Apply(scheduler::MemoryFreed{freed.session_id, Signed(freed.bytes)});
  if (const Session* const session = sessions_.Find(freed.session_id)) CountOutside(*session);
}

void Daemon::RequestLane(const wire::LaneNeeded& needed) {
  if (Session* const session = sessions_.Find(needed.session_id)) session->asks_lane = true;
  const bool gives_back = needed.bytes == 0;
  const bool possible = NoteDevice(needed.session_id, static_cast<uint32_t>(needed.device), true);
  if (!possible && !gives_back) return;
  scheduler_.ApplyWhenServing(scheduler::LaneNeeded{needed.session_id, Signed(needed.bytes)});
}

void Daemon::FinishSwap(const wire::Swapped& swapped) {
  const bool out = swapped.out != 0;
  observers_.Note(
      {.kind = out ? EventKind::kSwapOut : EventKind::kSwapIn, .session = swapped.session_id});
  spdlog::debug("session {} is {} ({}) {}", swapped.session_id, out ? "out" : "in", swapped.result,
                swapped.sentence);
  if (Session* const session = sessions_.Find(swapped.session_id)) session->swap.reset();
  scheduler_.Apply(
      scheduler::Swapped{swapped.session_id, out, swapped.result == 0, swapped.sentence});
}

void Daemon::AdoptGrants(const Session& session) {
  const wire::SessionRecord& record = session.record;
  scheduler::SessionAdopted adopted;
  adopted.arrived = Describe(session);
  adopted.persistent_bytes = Signed(record.persistent_bytes);
  adopted.ephemeral_bytes = Signed(record.lane_bytes);
  adopted.lane = static_cast<scheduler::LaneId>(record.lane);
  adopted.lane_bytes = Signed(record.lane_bytes);
  adopted.granted = record.granted != 0;
  adopted.place = record.place;
  adopted.pause = record.pause;
  scheduler_.Apply(adopted);
  // Who holds which lane is known only when all have been adopted.
  if (record.wants != 0) scheduler_.ApplyWhenServing(scheduler::Runnable{record.session_id});
}

// Its sessions run nowhere until another worker takes them over. First none of them has work: a
// lane that comes free would be granted to one that cannot hear of it.
void Daemon::NoteWorkerLost(uint32_t worker) {
  std::vector<uint64_t> concerned;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    if (entry.second.worker == worker && entry.second.phase == Phase::kRunning)
      concerned.push_back(entry.first);
  }
  for (const uint64_t id : concerned) scheduler_.Apply(scheduler::Idle{id, true});
  for (const uint64_t id : concerned) {
    const Session* const session = sessions_.Find(id);
    if (session == nullptr) continue;
    scheduler_.Apply(scheduler::Switched{static_cast<scheduler::LaneId>(session->lane), id, 0});
  }
}

// --- what the scheduler asks for -----------------------------------------------------------------

void Daemon::SendTo(const Session& session, const wire::DaemonToWorker& message) {
  if (session.phase != Phase::kRunning) return;
  if (session.in_process) {
    const std::optional<wire::DaemonToProgram> told =
        wire::Redirected<wire::DaemonToProgram>(message);
    if (told.has_value()) SendToProgram(session, *told);
    return;
  }
  // A send fails when the worker is ending: its pidfd settles its sessions a moment later.
  (void)children_->Send(session.worker, message);
}

void Daemon::TellLane(const Session& session) {
  if (session.lane == 0) return;
  SendTo(session, wire::AssignLane{session.record.session_id, session.lane, session.lane_bytes,
                                   session.record.device, 0, 0});
}

void Daemon::AssignLane(const scheduler::AssignLane& assign) {
  Session* const session = sessions_.Find(assign.session);
  if (session == nullptr) return;
  session->lane = assign.lane;
  session->lane_bytes = static_cast<uint64_t>(assign.bytes);
  lanes_.AddGuest(assign.lane, assign.session);
  if (assign.answer) {
    session->asks_lane = false;
    session->refusal.clear();
  }
  spdlog::debug("session {} is in lane {} of {} bytes", assign.session, assign.lane, assign.bytes);
  SendTo(*session, wire::AssignLane{assign.session, session->lane, session->lane_bytes,
                                    session->record.device, 0, assign.answer ? 1u : 0u});
  lanes_.TellShared();
  observers_.Note({.kind = EventKind::kLane,
                   .session = assign.session,
                   .lane = assign.lane,
                   .bytes = static_cast<uint64_t>(assign.bytes)});
}

void Daemon::RefuseMemory(const scheduler::RefuseMemory& refusal) {
  Session* const session = sessions_.Find(refusal.session);
  if (session == nullptr) return;
  spdlog::info("session {} gets no more memory: {}", refusal.session, refusal.reason);
  session->refusal = refusal.reason;
  if (std::exchange(session->asks_lane, false)) {
    SendTo(*session, wire::AssignLane{refusal.session, session->lane, session->lane_bytes,
                                      session->record.device, kOutOfMemory, 1});
  } else {
    SendTo(*session, wire::MemoryAnswer{refusal.session, kOutOfMemory});
  }
}

void Daemon::GrantOrRevoke(uint64_t id, uint64_t lane, bool grant) {
  Session* const session = sessions_.Find(id);
  if (session == nullptr) return;
  spdlog::debug("session {} {} lane {}", id, grant ? "may use" : "is to leave", lane);
  if (grant) {
    SendTo(*session, wire::Grant{id, lane});
  } else {
    SendTo(*session, wire::Revoke{id});
  }
  observers_.Note({.kind = grant ? EventKind::kGrant : EventKind::kRevoke,
                   .session = id,
                   .job = session->record.job.number,
                   .lane = lane});
}

void Daemon::OnOverstay(const scheduler::Report& report) {
  Session* const session = sessions_.Find(report.session);
  if (session == nullptr) return;
  const std::string text = absl::StrCat("came to no boundary for ", report.overstay_us / 1'000'000,
                                        " s after it was to leave lane ", report.lane);
  spdlog::warn("session {} ({}) {}", report.session, session->record.program, text);
  observers_.AddFault(
      {report.session, session->record.job.number, session->record.program, 0, text});
  const bool served = session->phase == Phase::kRunning && !session->in_process;
  if (options_.max_iteration_s == 0 || !served) return;
  ipc::MarkLost(session->page.get(), CUDA_ERROR_MPS_RPC_FAILURE,
                absl::StrCat("laneway: it ", text, ", and --max-iteration allows no more").c_str());
  SendTo(*session, wire::DetachSession{report.session});  // the page is the client's, too
  lifecycle_.Transition(session, Phase::kEnding);
}

void Daemon::Swap(const wire::Swap& swap) {
  Session* const session = sessions_.Find(swap.session_id);
  if (session == nullptr) return;
  spdlog::debug("session {} {} the host", swap.session_id, swap.out != 0 ? "goes to" : "leaves");
  const bool between = session->phase == Phase::kMoving || session->phase == Phase::kEntering;
  if (session->phase != Phase::kRunning && (swap.out != 0 || !between)) {
    scheduler_.Apply(
        scheduler::Swapped{swap.session_id, swap.out != 0, false, "no worker has it now"});
    return;
  }
  session->swap = swap;  // between two workers, the next one is asked
  SendTo(*session, swap);
}

void Daemon::PerformGrant(const scheduler::Action& action) {
  if (const scheduler::AssignLane* assign = std::get_if<scheduler::AssignLane>(&action)) {
    AssignLane(*assign);
  } else if (const scheduler::ResizeLane* resize = std::get_if<scheduler::ResizeLane>(&action)) {
    lanes_.Resize(*resize);
  } else if (const scheduler::Grant* grant = std::get_if<scheduler::Grant>(&action)) {
    GrantOrRevoke(grant->session, grant->lane, true);
  } else if (const scheduler::Revoke* revoke = std::get_if<scheduler::Revoke>(&action)) {
    GrantOrRevoke(revoke->session, revoke->lane, false);
  } else if (const scheduler::Successors* next = std::get_if<scheduler::Successors>(&action)) {
    lanes_.Publish(*next);
  } else if (const scheduler::GrantMemory* memory = std::get_if<scheduler::GrantMemory>(&action)) {
    spdlog::debug("session {} gets {} bytes", memory->session, memory->bytes);
    if (Session* const session = sessions_.Find(memory->session)) {
      session->refusal.clear();
      CountOutside(*session);
      SendTo(*session, wire::MemoryAnswer{memory->session, 0});
    }
  } else if (const scheduler::RefuseMemory* no = std::get_if<scheduler::RefuseMemory>(&action)) {
    RefuseMemory(*no);
  } else if (const scheduler::SwapOut* out = std::get_if<scheduler::SwapOut>(&action)) {
    Swap({out->session, 1, out->with_lane});
  } else if (const scheduler::SwapIn* in = std::get_if<scheduler::SwapIn>(&action)) {
    Swap({in->session, 0, in->with_lane});
  } else if (const scheduler::Wait* wait = std::get_if<scheduler::Wait>(&action)) {
    spdlog::info("session {} {}", wait->session, wait->reason);
  } else if (const scheduler::Report* report = std::get_if<scheduler::Report>(&action)) {
    OnOverstay(*report);
  }
}

}  // namespace control
