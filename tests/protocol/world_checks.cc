// World, second part: what it promises.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "scheduler/why.h"
#include "tests/protocol/world.h"

namespace protocol {
namespace {

namespace wire = ipc::control;

std::string Text(const scheduler::Session& session) {
  const int64_t unit = kUnit;
  return "lane " + std::to_string(session.lane) + " persistent " +
         std::to_string(session.persistent_bytes / unit) + " ephemeral " +
         std::to_string(session.ephemeral_bytes / unit) + (session.granted ? " granted" : "") +
         (session.runnable ? " runnable" : "") + (session.inside ? " inside" : "") +
         (session.revoked ? " revoked" : "") + " residence " +
         std::to_string(static_cast<int>(session.place.residence)) + " need " +
         std::to_string(static_cast<int>(session.need)) + " pause " +
         std::to_string(static_cast<int>(session.pause));
}

}  // namespace

void World::CheckLanes() {
  std::set<uint64_t> used;
  for (const std::pair<const uint32_t, std::unique_ptr<SimWorker>>& entry : workers_) {
    for (const auto& served : entry.second->sessions()) {
      const SimSession& session = *served.second;
      if (!session.lane().is_used()) continue;
      scene_.Require(used.insert(session.lane().number()).second, "two sessions use one lane");
    }
  }
  for (const std::pair<const pid_t, std::unique_ptr<SimInProcess>>& entry : in_process_) {
    if (daemon_ == nullptr || !entry.second->Uses(daemons_)) continue;
    scene_.Require(used.insert(entry.second->lane()).second, "two sessions use one lane");
  }
}

// Without a daemon sessions take what the keeper has. The next one counts what each may come back
// to, which can be more than the device has; who then waits inside its worker waits until others
// end.
bool World::MayWait() const {
  const std::map<uint32_t, scheduler::Device>& devices = daemon_->state().devices;
  const std::map<uint32_t, scheduler::Device>::const_iterator device = devices.find(0);
  if (device != devices.end() && device->second.free_bytes() < 0) return true;
  // A session that rests within an iteration, by its last word, keeps its lane until it computes
  // again. One that waits for memory there comes to no boundary, though its lane may be closing.
  const auto& sessions = daemon_->state().sessions;
  return std::any_of(sessions.begin(), sessions.end(), [](const auto& entry) {
    return entry.second.granted && entry.second.inside &&
           (!entry.second.runnable || entry.second.need != scheduler::Need::kNone);
  });
}

// The memory of a program in-process never leaves the device: other programs wait for its end.
bool World::WaitsForInProcess(const Program& program) const {
  const control::Session* const session = daemon_->SessionOf(program);
  if (session == nullptr) return false;
  const uint64_t id = session->record.session_id;
  const auto& sessions = daemon_->state().sessions;
  const bool held = std::any_of(sessions.begin(), sessions.end(), [id](const auto& entry) {
    return entry.first != id && entry.second.about.fixed && entry.second.persistent_bytes != 0;
  });
  const scheduler::Session* const known = daemon_->state().Find(id);
  return held && known != nullptr && (!known->on_device() || known->need != scheduler::Need::kNone);
}

void World::CheckRest() {
  scene_.Require(!daemon_->stopped(), "lanewayd has ended itself");
  for (const std::unique_ptr<Program>& program : programs_)
    scene_.Require(Served(*program) || MayWait() || WaitsForInProcess(*program),
                   "a program waits for ever");
  CheckHolders();
  CheckInProcess();
  CheckMemory();
}

void World::CheckHolders() {
  const scheduler::State& state = daemon_->state();
  for (const std::pair<const uint32_t, std::unique_ptr<SimWorker>>& entry : workers_) {
    for (const auto& served : entry.second->sessions()) {
      const scheduler::Session* const known = state.Find(served.first);
      scene_.Require(known != nullptr, "a worker serves a session that nobody knows");
      if (known == nullptr) continue;
      const worker::GateView gate = entry.second->View(served.first);
      scene_.Require(gate.granted == known->granted,
                     "scheduler and worker differ about who holds a lane");
      // Of one that a daemon has adopted with its lane it believes that it has work.
      scene_.Require(known->runnable || !gate.wants, "the scheduler knows of no work that waits");
    }
  }
}

// Memory that a lanewayd does not count when it begins to serve, it would grant a second time. A
// lane of a session's own counts in the lane that the session is told of. Lanes and sessions that
// this lanewayd does not know have ended: their memory is about to go.
void World::CheckCounted() {
  const scheduler::State& state = daemon_->state();
  uint64_t kept = 0, counted = 0;
  for (const wire::UsageList& list : keeper_.books().Usages()) {
    for (uint64_t i = 0; i < list.count; ++i) {
      const wire::Owner& owner = list.usages[i].owner;
      if (owner.kind != wire::OwnerKind::kLane) continue;
      const bool known = wire::IsOwnLane(owner.id)
                             ? state.Find(wire::SessionOf(owner)) != nullptr
                             : state.lanes.count(static_cast<scheduler::LaneId>(owner.id)) != 0;
      if (known) kept += list.usages[i].bytes;
    }
  }
  for (const std::pair<const scheduler::LaneId, scheduler::Lane>& lane : state.lanes)
    counted += static_cast<uint64_t>(lane.second.bytes);
  scene_.Require(kept <= counted, "a new lanewayd counts less of the lanes than the keeper has");
}

void World::CheckInProcess() {
  for (const std::pair<const pid_t, std::unique_ptr<SimInProcess>>& entry : in_process_) {
    const SimInProcess& program = *entry.second;
    if (!program.program()->alive() || !program.IsUp(daemons_)) continue;
    const scheduler::Session* const known = daemon_->state().Find(program.session_id());
    scene_.Require(known != nullptr, "a program in-process has a session that nobody knows");
    if (known == nullptr) continue;
    scene_.Require(program.Holds() == known->granted,
                   "scheduler and program differ about who holds a lane");
    // What it took without a daemon can be more than the device has, and is believed no further.
    scene_.Require(known->persistent_bytes <= static_cast<int64_t>(program.held_bytes()),
                   "more is counted for a program in-process than it has");
  }
}

uint64_t World::KeptFor(const wire::Owner& owner) const {
  uint64_t bytes = 0;
  for (const wire::ExtentList& list : keeper_.books().List(owner)) {
    for (uint64_t i = 0; i < list.count; ++i) bytes += list.extents[i].bytes;
  }
  return bytes;
}

// Programs in-process have allocated without lanewayd what was promised to sessions of workers.
// These wait for what they were granted, until a session frees some.
bool World::IsOverbooked() const {
  const scheduler::Device& device = daemon_->state().devices.at(0);
  return !in_process_.empty() &&
         device.charged_bytes + device.lanes_bytes > static_cast<int64_t>(device_.capacity_bytes());
}

void World::CheckMemory() {
  const scheduler::State& state = daemon_->state();
  for (const std::pair<const scheduler::SessionId, scheduler::Session>& entry : state.sessions) {
    const scheduler::Session& session = entry.second;
    if (!session.on_device() || session.place.residence != scheduler::Residence::kDevice) continue;
    if (session.about.fixed) continue;  // the keeper has no extents of a program in-process
    const uint64_t kept = KeptFor({wire::OwnerKind::kSession, entry.first});
    const uint64_t counted = static_cast<uint64_t>(session.persistent_bytes);
    scene_.Require(kept == counted || (kept < counted && IsOverbooked()),
                   "scheduler and keeper differ about a session's memory");
  }
  std::map<wire::Owner, uint64_t> kept;
  for (const wire::UsageList& list : keeper_.books().Usages()) {
    for (uint64_t i = 0; i < list.count; ++i) kept[list.usages[i].owner] += list.usages[i].bytes;
  }
  for (const std::pair<const wire::Owner, uint64_t>& entry : kept) {
    if (entry.first.kind == wire::OwnerKind::kSession) {
      scene_.Require(state.Find(entry.first.id) != nullptr, "memory of a session that has ended");
      continue;
    }
    if (wire::IsOwnLane(entry.first.id)) {
      scene_.Require(state.Find(wire::SessionOf(entry.first)) != nullptr,
                     "an own lane of a session that has ended");
      continue;
    }
    const auto lane = state.lanes.find(static_cast<scheduler::LaneId>(entry.first.id));
    scene_.Require(lane != state.lanes.end(), "memory of a lane that has ended");
    if (lane == state.lanes.end()) continue;
    const bool shrinks = std::any_of(workers_.begin(), workers_.end(), [&entry](const auto& one) {
      return one.second->OwesShrink(entry.first.id);
    });
    scene_.Require(shrinks || entry.second <= static_cast<uint64_t>(lane->second.bytes),
                   "a lane has more memory than is counted");
  }
}

void World::CheckNothingIsLeft() {
  const scheduler::State& state = daemon_->state();
  scene_.Require(programs_.empty(), "a session is left of a program that has ended");
  scene_.Require(keeper_.books().Empty(), "the keeper holds memory when all have ended");
  scene_.Require(device_.mappings().empty(), "something is mapped when all have ended");
  scene_.Require(state.sessions.empty() && state.lanes.empty(), "a session or a lane is left");
  scene_.Require(state.queued == 0 && state.admitted == 0 && state.swapped_bytes == 0,
                 "a place is left taken");
  for (const std::pair<const uint32_t, scheduler::Device>& entry : state.devices) {
    scene_.Require(entry.second.charged_bytes == 0 && entry.second.lanes_bytes == 0 &&
                       entry.second.coming_bytes == 0 && entry.second.swapping == 0,
                   "memory is left counted");
  }
}

std::string World::Describe() const {
  std::string text = "policy " + settings_.policy + ", " +
                     std::to_string(settings_.limits.lanes_max) + " lanes at most, " +
                     std::to_string(device_.capacity_bytes() / kUnit) + " units\n";
  if (daemon_ != nullptr) text += DescribeDaemon();
  for (const std::pair<const uint32_t, std::unique_ptr<SimWorker>>& entry : workers_) {
    text += "  worker " + std::to_string(entry.first) + "\n";
    for (const auto& session : entry.second->sessions())
      text += "    " + session.second->Describe() + "\n";
  }
  for (const std::pair<const pid_t, std::unique_ptr<SimInProcess>>& entry : in_process_)
    text += "  " + entry.second->Describe() + "\n";
  for (const wire::UsageList& list : keeper_.books().Usages()) {
    for (uint64_t i = 0; i < list.count; ++i)
      text += "  the keeper has " + std::to_string(list.usages[i].bytes / kUnit) + " units of " +
              (list.usages[i].owner.kind == wire::OwnerKind::kLane ? "lane " : "session ") +
              std::to_string(list.usages[i].owner.id) + "\n";
  }
  return text;
}

std::string World::DescribeDaemon() const {
  const scheduler::State& state = daemon_->state();
  std::string text;
  for (const std::pair<const uint64_t, control::Session>& entry : daemon_->sessions().all()) {
    text += "  session " + std::to_string(entry.first) + " of program " +
            std::to_string(entry.second.record.pid) + " " + control::NameOf(entry.second.phase) +
            " worker " + std::to_string(entry.second.worker) +
            (entry.second.record.contained != 0
                 ? " own worker " + std::to_string(entry.second.own_worker)
                 : "") +
            ": ";
    if (const scheduler::Session* const session = state.Find(entry.first))
      text += Text(*session) + ", " +
              scheduler::Sentence(scheduler::Why(state, entry.first, scene_.now_us));
    text += "\n";
  }
  for (const std::pair<const uint32_t, control::Worker>& entry : daemon_->workers()) {
    text += "  worker " + std::to_string(entry.first) + " state " +
            std::to_string(static_cast<int>(entry.second.state)) +
            (entry.second.own ? " own" : "") + (entry.second.served ? " served" : "") + "\n";
  }
  for (const auto& entry : state.lanes) {
    text += "  lane " + std::to_string(entry.first) + " bytes " +
            std::to_string(entry.second.bytes / static_cast<int64_t>(kUnit)) + " holder " +
            std::to_string(entry.second.holder == nullptr ? 0 : entry.second.holder->id) +
            " members " + std::to_string(entry.second.members.size()) +
            (entry.second.closing ? " closing" : "") + " shrinking to " +
            std::to_string(entry.second.shrinking_to) + " at the keeper " +
            std::to_string(KeptFor({wire::OwnerKind::kLane, entry.first}) / kUnit) + "\n";
  }
  return text;
}

}  // namespace protocol
