// SimDaemon, second part: what the scheduler asks for, and what it is told.
#include <algorithm>
#include <utility>

#include "ipc/overloaded.h"
#include "tests/protocol/sim_daemon.h"

namespace protocol {
namespace {

namespace wire = ipc::control;

}  // namespace

// While sessions are adopted nothing else is decided: another that is yet to come may hold the
// lane, or have the memory. What a worker said of a session before it told of it is in what it
// told.
bool SimDaemon::HoldsBack(const scheduler::Event& event) {
  if (core_.serving || std::holds_alternative<scheduler::SessionAdopted>(event)) return false;
  uint64_t session = 0;
  std::visit(
      [&session](const auto& body) {
        if constexpr (requires { body.session; }) session = body.session;
        if constexpr (requires { body.from; }) session = body.from;
      },
      event);
  const bool left = std::holds_alternative<scheduler::SessionLeft>(event);
  if (left || core_.Find(session) != nullptr) held_.push_back(event);
  return true;
}

void SimDaemon::Happen(const scheduler::Event& event) {
  if (HoldsBack(event)) return;
  lanes_.TellAlone();
  core_.scene->Change();
  for (const scheduler::Action& action : OnEvent(&core_.state, event, core_.scene->now_us))
    to_do_.push_back(action);
  if (performing_) return;
  performing_ = true;
  while (!to_do_.empty()) {
    const scheduler::Action action = std::move(to_do_.front());
    to_do_.pop_front();
    Perform(action);
  }
  performing_ = false;
}

// As its page would say it.
void SimDaemon::NoteProgress(uint64_t id) {
  Client* const client = core_.Find(id);
  const scheduler::Session* const known = core_.state.Find(id);
  if (client == nullptr || known == nullptr || !known->granted) return;
  const int64_t busy_us = core_.scene->now_us - client->granted_us;
  client->granted_us = core_.scene->now_us;
  if (busy_us > 0) Happen(scheduler::Progress{id, client->program->iterates ? 1 : 0, busy_us});
}

void SimDaemon::Perform(const scheduler::Action& action) {
  std::visit(ipc::Overloaded{
                 [this](const scheduler::Admit& admit) {
                   if (Client* const client = core_.Find(admit.session)) AttachOrWait(client);
                 },
                 [](const scheduler::Queue&) {},
                 [this](const scheduler::Reject& reject) {
                   Client* const client = core_.Find(reject.session);
                   if (client == nullptr) return;
                   client->program->lost = true;
                   Leave(client);
                 },
                 [this](const scheduler::AssignLane& assign) { AssignLane(assign); },
                 [this](const scheduler::ResizeLane& resize) { lanes_.Resize(resize); },
                 [this](const scheduler::Grant& grant) {
                   Client* const client = core_.Find(grant.session);
                   if (client == nullptr) return;
                   client->granted_us = core_.scene->now_us;
                   core_.SendTo(*client, wire::Grant{grant.session, grant.lane});
                 },
                 [this](const scheduler::Revoke& revoke) {
                   if (const Client* const client = core_.Find(revoke.session))
                     core_.SendTo(*client, wire::Revoke{revoke.session});
                 },
                 [this](const scheduler::Successors& next) { lanes_.Publish(next); },
                 [this](const scheduler::SwapOut& out) {
                   Swap({out.session, 1, out.with_lane});
                 },
                 [this](const scheduler::SwapIn& in) {
                   Swap({in.session, 0, in.with_lane});
                 },
                 [this](const scheduler::GrantMemory& memory) {
                   if (const Client* const client = core_.Find(memory.session))
                     core_.SendTo(*client, wire::MemoryAnswer{memory.session, 0});
                 },
                 [this](const scheduler::RefuseMemory& refusal) { Refuse(refusal.session); },
                 [](const scheduler::Wait&) {},
                 [](const scheduler::Report&) {},
             },
             action);
}

void SimDaemon::AssignLane(const scheduler::AssignLane& assign) {
  Client* const client = core_.Find(assign.session);
  if (client == nullptr) return;
  client->lane = assign.lane;
  client->lane_bytes = static_cast<uint64_t>(assign.bytes);
  lanes_.NoteGuest(client->lane, assign.session);
  if (assign.answer) client->asks_lane = false;
  core_.SendTo(*client, wire::AssignLane{assign.session, client->lane, client->lane_bytes, 0, 0,
                                         assign.answer ? 1u : 0u});
  lanes_.TellShared();
}

void SimDaemon::Refuse(uint64_t id) {
  Client* const client = core_.Find(id);
  if (client == nullptr) return;
  if (std::exchange(client->asks_lane, false)) {
    core_.SendTo(*client, wire::AssignLane{id, client->lane, client->lane_bytes, 0,
                                           CUDA_ERROR_OUT_OF_MEMORY, 1});
  } else {
    core_.SendTo(*client, wire::MemoryAnswer{id, CUDA_ERROR_OUT_OF_MEMORY});
  }
}

void SimDaemon::Swap(const wire::Swap& swap) {
  Client* const client = core_.Find(swap.session_id);
  if (client == nullptr) return;
  const bool between = client->stage == Stage::kMoving || client->stage == Stage::kEntering;
  if (client->stage != Stage::kRunning && (swap.out != 0 || !between)) {
    Happen(scheduler::Swapped{swap.session_id, swap.out != 0, false, "no worker has it now"});
    return;
  }
  client->swap = swap;
  core_.SendTo(*client, swap);
}

// --- what workers say ----------------------------------------------------------------------------

void SimDaemon::Handle(uint32_t worker, const wire::WorkerToDaemon& message) {
  std::visit(
      ipc::Overloaded{
          [&](const wire::WorkerReady&) {
            Child* const child = &core_.children.at(worker);
            if (std::exchange(child->ready, true) || child->listing) return;
            ServeWaiting();
            ReleaseForUpgrade();
          },
          [&](const wire::ListEnd&) {
            Child* const child = &core_.children.at(worker);
            if (!std::exchange(child->listing, false)) return;
            ServeWaiting();
            ReleaseForUpgrade();
            CheckAdopted();
          },
          [](const wire::StartFailed&) {},
          [](const wire::Poisoned&) {},
          [&](const wire::SessionRecord& record) { Adopt(worker, record); },
          [&](const wire::Attached& attached) { OnAttached(attached); },
          [&](const wire::SessionEnded& ended) { OnSessionEnded(ended.session_id); },
          [&](const wire::SessionReleased& released) { OnReleased(released.session_id); },
          [&](const wire::Switched& switched) {
            NoteProgress(switched.from);
            Happen(scheduler::Switched{static_cast<scheduler::LaneId>(switched.lane), switched.from,
                                       switched.to});
          },
          [&](const wire::GateReport& report) {
            const Client* const client = core_.Find(report.session_id);
            if (client == nullptr || client->stage != Stage::kRunning) return;
            if (report.event == wire::GateEvent::kRunnable) {
              Happen(scheduler::Runnable{report.session_id});
              return;
            }
            NoteProgress(report.session_id);
            Happen(scheduler::Idle{report.session_id, report.event == wire::GateEvent::kIdle});
          },
          // Of a session that is yet to be adopted it is asked again.
          [&](const wire::LaneNeeded& needed) {
            Client* const client = core_.Find(needed.session_id);
            if (client == nullptr) return;
            client->asks_lane = true;
            Happen(scheduler::LaneNeeded{needed.session_id, static_cast<int64_t>(needed.bytes)});
          },
          [&](const wire::LaneShrunk& shrunk) { lanes_.RecordShrink(worker, shrunk); },
          [&](const wire::LaneChanged& changed) {
            for (const std::pair<const uint32_t, Child>& entry : core_.children) {
              if (entry.first != worker) (void)core_.Send(entry.first, changed);
            }
            lanes_.ReleaseIfEnded(changed.lane);
          },
          [&](const wire::MemoryNeeded& needed) {
            if (core_.Find(needed.session_id) == nullptr) return;
            Happen(scheduler::MemoryNeeded{needed.session_id, static_cast<int64_t>(needed.bytes)});
          },
          [&](const wire::MemoryFreed& freed) {
            Happen(scheduler::MemoryFreed{freed.session_id, static_cast<int64_t>(freed.bytes)});
          },
          [&](const wire::Swapped& swapped) {
            if (Client* const client = core_.Find(swapped.session_id)) client->swap.reset();
            Happen(scheduler::Swapped{swapped.session_id, swapped.out != 0, swapped.result == 0,
                                      "the disk is full"});
          },
      },
      message);
}

void SimDaemon::Adopt(uint32_t worker, const wire::SessionRecord& record) {
  Program* const program = core_.scene->Find(record.session_id);
  if (program == nullptr || core_.Find(record.session_id) != nullptr) return;
  Client& client = core_.clients[record.session_id];
  client.record = record;
  client.program = program;
  client.stage = Stage::kRunning;
  client.worker = worker;
  client.own_worker = record.contained != 0 ? worker : 0;
  client.lane = record.lane;
  client.lane_bytes = record.lane_bytes;
  if (record.lane != 0) lanes_.NoteGuest(record.lane, record.session_id);
  const scheduler::Residence residence = record.place.residence;
  if (residence == scheduler::Residence::kGoingOut ||
      residence == scheduler::Residence::kComingIn) {
    client.swap = wire::Swap{record.session_id, residence == scheduler::Residence::kGoingOut,
                             record.place.lane_saved};
  }
  scheduler::SessionAdopted adopted;
  adopted.arrived.session = adopted.arrived.job = record.session_id;
  adopted.persistent_bytes = static_cast<int64_t>(record.persistent_bytes);
  adopted.ephemeral_bytes = static_cast<int64_t>(record.lane_bytes);
  adopted.lane = static_cast<scheduler::LaneId>(record.lane);
  adopted.lane_bytes = static_cast<int64_t>(record.lane_bytes);
  adopted.granted = record.granted != 0;
  adopted.place = record.place;
  adopted.pause = record.pause;
  Happen(adopted);
  if (record.wants != 0) Happen(scheduler::Runnable{record.session_id});
}

void SimDaemon::Pause(uint64_t id, scheduler::Pause pause) {
  Client* const client = core_.Find(id);
  if (client == nullptr || core_.state.Find(id) == nullptr) return;
  client->record.pause = pause;
  core_.SendTo(*client, client->record);
  if (pause == scheduler::Pause::kNone) {
    Happen(scheduler::Resumed{id});
  } else {
    Happen(scheduler::Paused{id, pause == scheduler::Pause::kEvicted});
  }
}

}  // namespace protocol
