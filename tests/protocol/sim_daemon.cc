#include "tests/protocol/sim_daemon.h"

#include <algorithm>
#include <utility>

#include "tests/protocol/say.h"

namespace protocol {
namespace {

namespace wire = ipc::control;

constexpr int kMovesFailedMax = 3;
constexpr int kAttemptsMax = 3;

}  // namespace

SimDaemon::SimDaemon(Scene* scene, SimKeeper* keeper, const std::string& policy,
                     const scheduler::Limits& limits, StartWorker start)
    : core_(scene, keeper, policy, limits), start_(std::move(start)) {
  core_.happen = [this](const scheduler::Event& event) { Happen(event); };
}

SimDaemon::~SimDaemon() {
  for (const std::pair<const uint32_t, Child>& entry : core_.children)
    entry.second.connection->daemon_gone = true;
}

// --- adoption ------------------------------------------------------------------------------------

void SimDaemon::AdoptWorker(uint32_t number, std::shared_ptr<Connection> connection, bool own) {
  Child& child = core_.children[number];
  child.number = number;
  child.connection = std::move(connection);
  child.listing = true;
  child.own = own;
  (void)core_.Send(number, wire::Query{});
}

void SimDaemon::BeginToServe() { CheckAdopted(); }

void SimDaemon::CheckAdopted() {
  if (core_.serving) return;
  for (const std::pair<const uint32_t, Child>& entry : core_.children) {
    if (entry.second.listing) return;
  }
  keeper::Keeper* const keeper = core_.keeper->AfterAll();
  const std::vector<wire::UsageList> usages = keeper->Usages();
  const auto each = [&usages](const std::function<void(const wire::Usage&)>& use) {
    for (const wire::UsageList& list : usages)
      std::for_each(list.usages, list.usages + list.count, use);
  };
  each([this](const wire::Usage& usage) {
    if (usage.worker != 0 && core_.children.count(usage.worker) == 0)
      core_.keeper->Post(wire::ReleaseWorker{usage.worker});
  });
  for (const std::pair<const uint32_t, Child>& entry : core_.children)
    (void)core_.Send(entry.first, wire::KeeperChanged{});
  core_.serving = true;
  Happen(scheduler::CapacityChanged{
      0, static_cast<int64_t>(keeper->Describe().devices[0].capacity_bytes)});
  each([this](const wire::Usage& usage) {
    const uint64_t id = wire::SessionOf(usage.owner);
    // Also a lane that went with all of its sessions and the daemon that knew of it.
    const bool unknown =
        id != 0 ? core_.Find(id) == nullptr
                : core_.state.lanes.count(static_cast<scheduler::LaneId>(usage.owner.id)) == 0;
    if (unknown) core_.keeper->Post(wire::ReleaseOwner{usage.owner});
  });
  lanes_.ShrinkToCounted(usages);
  lanes_.TellShared();
  std::vector<uint64_t> waiting;
  for (const std::pair<const uint64_t, Client>& entry : core_.clients) {
    if (entry.second.stage == Stage::kQueued) waiting.push_back(entry.first);
  }
  for (const uint64_t id : waiting) {
    scheduler::SessionArrived arrived;
    arrived.session = arrived.job = id;
    if (core_.Find(id) != nullptr) Happen(arrived);
  }
  for (const scheduler::Event& event : std::exchange(held_, {})) Happen(event);
}

void SimDaemon::Hello(Program* program) {
  Client& client = core_.clients[program->session];
  client.record.session_id = program->session;
  client.record.contained = program->contained;
  client.program = program;
  if (!core_.serving) return;
  scheduler::SessionArrived arrived;
  arrived.session = arrived.job = program->session;
  Happen(arrived);
}

// --- its loop ------------------------------------------------------------------------------------

bool SimDaemon::Loop() {
  if (core_.serving && scheduler::NextTimerUs(core_.state) <= core_.scene->now_us) {
    for (const std::pair<const uint64_t, Client>& entry : core_.clients) {
      if (entry.second.stage == Stage::kRunning) NoteProgress(entry.first);
    }
    Happen(scheduler::Timer{});
    return true;
  }
  if (NoteProgramEnd()) return true;
  std::vector<uint32_t> order;
  for (const std::pair<const uint32_t, Child>& entry : core_.children) order.push_back(entry.first);
  if (order.empty()) return false;
  const size_t first = core_.scene->dice.Below(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const std::map<uint32_t, Child>::iterator child =
        core_.children.find(order[(first + i) % order.size()]);
    if (child != core_.children.end() && HearChild(&child->second)) return true;
  }
  return false;
}

bool SimDaemon::HearChild(Child* child) {
  if (!child->connection->to_daemon.empty()) {
    const wire::WorkerToDaemon message = std::move(child->connection->to_daemon.front());
    child->connection->to_daemon.pop_front();
    core_.scene->Change();
    if (core_.scene->verbose) Say(false, child->number, message);
    Handle(child->number, message);
    return true;
  }
  if (!child->gone) return false;
  OnChildGone(child->number);
  return true;
}

bool SimDaemon::NoteProgramEnd() {
  for (std::pair<const uint64_t, Client>& entry : core_.clients) {
    Client* const client = &entry.second;
    if (client->program->alive || client->end_noted) continue;
    if (!core_.scene->calm && !core_.scene->dice.OneIn(3)) continue;
    client->end_noted = true;
    core_.scene->Change();
    if (client->stage == Stage::kAttaching || client->stage == Stage::kEntering ||
        client->stage == Stage::kRunning) {
      client->stage = Stage::kEnding;
      Happen(scheduler::SessionEnding{entry.first});
    } else if (client->stage != Stage::kEnding) {
      Leave(client);
    }
    return true;
  }
  return false;
}

void SimDaemon::OnWorkerGone(uint32_t worker) {
  const std::map<uint32_t, Child>::iterator found = core_.children.find(worker);
  if (found == core_.children.end()) return;
  found->second.gone = true;
  found->second.connection->worker_gone = true;
}

void SimDaemon::OnKeeperReplaced() {
  for (const std::pair<const uint32_t, Child>& entry : core_.children)
    (void)core_.Send(entry.first, wire::KeeperChanged{});
}

// --- sessions and their workers ------------------------------------------------------------------

const Child* SimDaemon::WorkerFor(const Client& client) const {
  if (client.record.contained != 0) return core_.Ready(client.own_worker);
  for (const std::pair<const uint32_t, Child>& entry : core_.children) {
    const Child& child = entry.second;
    if (!child.own && !child.leaving && child.ready && !child.connection->worker_gone)
      return &child;
  }
  return nullptr;
}

void SimDaemon::EnsureWorkerFor(Client* client) {
  const bool own = client != nullptr && client->record.contained != 0;
  if (own && client->own_worker != 0) return;
  const bool has_shared = std::any_of(core_.children.begin(), core_.children.end(),
                                      [](const std::pair<const uint32_t, Child>& entry) {
                                        return !entry.second.own && !entry.second.leaving;
                                      });
  if (!own && has_shared) return;
  uint32_t number = 0;
  std::shared_ptr<Connection> connection = start_(own, &number);
  Child& child = core_.children[number];
  child.number = number;
  child.connection = std::move(connection);
  child.own = own;
  if (own) client->own_worker = number;
}

void SimDaemon::AttachOrWait(Client* client) {
  const Child* const worker = WorkerFor(*client);
  if (worker == nullptr) {
    client->stage = Stage::kWaiting;
    client->worker = 0;
    return EnsureWorkerFor(client);
  }
  client->stage = Stage::kAttaching;
  ++client->attempts;
  client->worker = worker->number;
  (void)core_.Send(client->worker, wire::AttachSession{client->record});
}

void SimDaemon::ServeWaiting() {
  std::vector<uint64_t> waiting;
  for (const std::pair<const uint64_t, Client>& entry : core_.clients) {
    const Stage stage = entry.second.stage;
    if (stage == Stage::kWaiting || stage == Stage::kMoving) waiting.push_back(entry.first);
  }
  for (const uint64_t id : waiting) {
    Client* const client = core_.Find(id);
    if (client == nullptr) continue;
    EnsureWorkerFor(client);
    const Child* const worker = WorkerFor(*client);
    if (worker == nullptr) continue;
    if (client->stage == Stage::kWaiting) {
      AttachOrWait(client);
      continue;
    }
    client->stage = Stage::kEntering;
    client->worker = worker->number;
    ++client->record.generation;
    (void)core_.Send(client->worker, wire::AttachSession{client->record});
  }
  lanes_.TellUntoldShrinks();
}

void SimDaemon::OnAttached(const wire::Attached& attached) {
  Client* const client = core_.Find(attached.session_id);
  if (client == nullptr) return;
  if (client->stage == Stage::kEntering) return OnEntered(client, attached);
  if (client->stage != Stage::kAttaching) return;
  if (attached.result != 0) {
    client->stage = Stage::kEnding;
    client->program->lost = true;
    return;
  }
  client->stage = Stage::kRunning;
  if (client->lane != 0)
    core_.SendTo(*client, wire::AssignLane{attached.session_id, client->lane, client->lane_bytes});
  lanes_.TellShared();
}

void SimDaemon::OnEntered(Client* client, const wire::Attached& attached) {
  const uint64_t id = attached.session_id;
  client->stage = Stage::kRunning;
  client->moves_failed = 0;
  if (attached.result != 0) {
    client->program->lost = true;
    return;
  }
  if (core_.Ready(client->worker) == nullptr) return;
  client->asks_lane = false;
  Happen(scheduler::SessionMoved{id, static_cast<int64_t>(attached.persistent_bytes)});
  if (client->lane != 0)
    core_.SendTo(*client, wire::AssignLane{id, client->lane, client->lane_bytes});
  lanes_.TellShared();
  if (client->swap.has_value()) core_.SendTo(*client, *client->swap);
}

void SimDaemon::OnSessionEnded(uint64_t id) {
  Client* const client = core_.Find(id);
  if (client == nullptr || client->stage == Stage::kLost) return;
  if (client->program->alive && client->stage == Stage::kRunning) {
    client->stage = Stage::kLost;
    core_.keeper->Post(wire::ReleaseOwner{{wire::OwnerKind::kSession, id}});
    lanes_.Release(wire::OwnLaneOf(id));
    Happen(scheduler::SessionLeft{id});
    Retire(client->worker);
    return;
  }
  Leave(client);
}

// --- moves ---------------------------------------------------------------------------------------

bool SimDaemon::BeginMove(Client* client) {
  const Program& program = *client->program;
  if (!program.alive || program.lost || !program.quiet || program.stays) return false;
  if (client->moves_failed >= kMovesFailedMax) return false;
  client->stage = Stage::kMoving;
  client->worker = 0;
  if (!client->swap.has_value()) return true;
  const bool out = program.swap.held;
  if (out && client->swap->out == 0) return true;
  const wire::Swap swap = *std::exchange(client->swap, std::nullopt);
  Happen(scheduler::Swapped{swap.session_id, swap.out != 0, (swap.out != 0) == out, "it moved"});
  return true;
}

void SimDaemon::OnReleased(uint64_t id) {
  Client* const client = core_.Find(id);
  if (client == nullptr || client->stage == Stage::kLost) return;
  const uint32_t left = client->worker;
  if (!client->program->alive || client->stage == Stage::kEnding) {
    Leave(client);
  } else if (BeginMove(client)) {
    Happen(scheduler::Idle{id, true});
    ServeWaiting();
  } else {
    Lose(client);
  }
  Retire(left);
}

void SimDaemon::Lose(Client* client) {
  const uint64_t id = client->record.session_id;
  client->program->lost = true;
  if (client->stage == Stage::kEnding || !client->program->alive) return Leave(client);
  client->stage = Stage::kLost;
  core_.keeper->Post(wire::ReleaseOwner{{wire::OwnerKind::kSession, id}});
  lanes_.Release(wire::OwnLaneOf(id));
  client->program->swap = {};
  Happen(scheduler::SessionLeft{id});
}

void SimDaemon::Leave(Client* client) {
  const uint64_t id = client->record.session_id;
  const uint32_t worker = client->own_worker != 0 ? client->own_worker : client->worker;
  core_.keeper->Post(wire::ReleaseOwner{{wire::OwnerKind::kSession, id}});
  lanes_.Release(wire::OwnLaneOf(id));
  core_.clients.erase(id);
  Happen(scheduler::SessionLeft{id});
  lanes_.ReleaseLanesOf(id);
  lanes_.TellUntoldShrinks();
  lanes_.TellShared();
  Retire(worker);
}

void SimDaemon::OnChildGone(uint32_t worker) {
  const bool was_ready = core_.children.at(worker).ready;
  core_.children.erase(worker);
  upgrading_.erase(worker);
  core_.scene->Change();
  core_.keeper->Post(wire::ReleaseWorker{worker});
  std::vector<uint64_t> ran, concerned;
  for (const std::pair<const uint64_t, Client>& entry : core_.clients) {
    if (entry.second.worker != worker || entry.second.stage == Stage::kLost) continue;
    concerned.push_back(entry.first);
    if (entry.second.stage == Stage::kRunning) ran.push_back(entry.first);
  }
  // First none of them has work: a lane that comes free would be granted to one of them.
  for (const uint64_t id : ran) Happen(scheduler::Idle{id, true});
  for (const uint64_t id : ran) {
    const Client* const client = core_.Find(id);
    if (client == nullptr) continue;
    Happen(scheduler::Switched{static_cast<scheduler::LaneId>(client->lane), id, 0});
  }
  for (const std::pair<const uint32_t, Child>& entry : core_.children)
    (void)core_.Send(entry.first, wire::LaneChanged{0});
  for (std::pair<const uint64_t, Client>& entry : core_.clients) {
    if (entry.second.own_worker == worker) entry.second.own_worker = 0;
  }
  for (const uint64_t id : concerned) {
    Client* const client = core_.Find(id);
    if (client == nullptr) continue;
    if (client->stage == Stage::kAttaching && was_ready && client->attempts < kAttemptsMax) {
      AttachOrWait(client);
    } else if (client->stage == Stage::kAttaching) {
      client->program->lost = true;
      Leave(client);
    } else {
      client->moves_failed += client->stage == Stage::kEntering;
      if (client->stage == Stage::kEnding || !BeginMove(client)) Lose(client);
    }
  }
  lanes_.TellShared();
  ServeWaiting();
  lanes_.TellAnew(worker);
  CheckAdopted();
}

}  // namespace protocol
