// A thin model of lanewayd: turns the scheduler's actions into messages and messages into events,
// as daemon/control does (grants.cc, moves.cc, door.cc, daemon.cc), without processes. Its three
// parts have the borders of the real ones, which may take their place: the table of sessions, the
// registry of lanes, and the port to the scheduler. Thread safety: one thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "daemon/control/shrinking.h"
#include "scheduler/scheduler.h"
#include "tests/protocol/sim_worker.h"

namespace protocol {

enum class Stage {
  kQueued,
  kWaiting,
  kAttaching,
  kRunning,
  kMoving,
  kEntering,
  kEnding,
  kLost,
};

struct Client {
  ipc::control::SessionRecord record;
  Program* program = nullptr;
  Stage stage = Stage::kQueued;
  uint32_t worker = 0;
  uint32_t own_worker = 0;
  int attempts = 0;
  int moves_failed = 0;
  uint64_t lane = 0;
  uint64_t lane_bytes = 0;
  std::optional<ipc::control::Swap> swap;
  bool asks_lane = false;
  bool end_noted = false;
  int64_t granted_us = 0;
};

struct Child {
  uint32_t number = 0;
  std::shared_ptr<Connection> connection;
  bool own = false;
  bool leaving = false;
  bool ready = false;
  bool listing = false;
  bool retired = false;
  bool gone = false;  // its process; noticed later
};

// What the parts of lanewayd have in common.
struct DaemonCore {
  DaemonCore(Scene* scene, SimKeeper* keeper, const std::string& policy,
             const scheduler::Limits& limits)
      : scene(scene), keeper(keeper), state(policy, limits) {}

  Scene* scene;
  SimKeeper* keeper;
  scheduler::State state;
  std::map<uint64_t, Client> clients;
  std::map<uint32_t, Child> children;
  bool serving = false;
  std::function<void(const scheduler::Event&)> happen;

  Client* Find(uint64_t session);
  const Child* Ready(uint32_t worker) const;
  // False: the worker is gone.
  bool Send(uint32_t worker, const ipc::control::DaemonToWorker& message);
  void SendTo(const Client& client, const ipc::control::DaemonToWorker& message);
};

// Who uses which lane, and how lanes give memory back (lane_users.cc).
class SimLanes {
 public:
  explicit SimLanes(DaemonCore* core) : core_(*core) {}

  void TellShared();
  void TellAlone();
  void NoteGuest(uint64_t lane, uint64_t session) { guests_[lane].insert(session); }
  void Resize(const scheduler::ResizeLane& resize);
  void ShrinkToCounted(const std::vector<ipc::control::UsageList>& usages);
  void RecordShrink(uint32_t worker, const ipc::control::LaneShrunk& shrunk);
  void TellUntoldShrinks();
  void TellAnew(uint32_t lost_worker);
  void ReleaseIfEnded(uint64_t lane);
  void ReleaseLanesOf(uint64_t session);
  void Release(uint64_t lane);
  void Publish(const scheduler::Successors& successors);

 private:
  std::set<uint32_t> WorkersOf(uint64_t lane) const;
  void TellToShrink(const control::Shrinking::Order& order);

  DaemonCore& core_;
  control::Shrinking shrinking_;
  std::map<uint64_t, std::set<uint64_t>> guests_;   // by lane
  std::map<uint64_t, std::set<uint32_t>> workers_;  // by lane
  std::pair<uint32_t, uint64_t> alone_;             // worker and lane of the only session
};

class SimDaemon {
 public:
  using StartWorker = std::function<std::shared_ptr<Connection>(bool own, uint32_t* number)>;
  SimDaemon(Scene* scene, SimKeeper* keeper, const std::string& policy,
            const scheduler::Limits& limits, StartWorker start);
  ~SimDaemon();

  // A worker that runs already.
  void AdoptWorker(uint32_t number, std::shared_ptr<Connection> connection, bool own);
  void BeginToServe();  // when nobody is to be adopted any more
  void Hello(Program* program);
  // A turn of its loop: a message, an end, the timer. False: there is nothing to do.
  bool Loop();
  void OnWorkerGone(uint32_t worker);  // its process; noticed later
  void OnKeeperReplaced();
  void Upgrade();
  void Pause(uint64_t session, scheduler::Pause pause);

  DaemonCore& core() { return core_; }

 private:
  // --- sim_daemon.cc: children and sessions
  bool HearChild(Child* child);
  bool NoteProgramEnd();
  void Handle(uint32_t worker, const ipc::control::WorkerToDaemon& message);
  void CheckAdopted();
  void Adopt(uint32_t worker, const ipc::control::SessionRecord& record);
  void OnAttached(const ipc::control::Attached& attached);
  void OnEntered(Client* client, const ipc::control::Attached& attached);
  void OnSessionEnded(uint64_t session);
  void OnReleased(uint64_t session);
  void OnChildGone(uint32_t worker);
  bool BeginMove(Client* client);
  void Lose(Client* client);
  void Leave(Client* client);
  void AttachOrWait(Client* client);
  void ServeWaiting();
  void ReleaseForUpgrade();
  void Retire(uint32_t worker);
  const Child* WorkerFor(const Client& client) const;
  void EnsureWorkerFor(Client* client);

  // --- sim_scheduling.cc: the port to the scheduler
  void Happen(const scheduler::Event& event);
  bool HoldsBack(const scheduler::Event& event);
  void Perform(const scheduler::Action& action);
  void NoteProgress(uint64_t session);
  void AssignLane(const scheduler::AssignLane& assign);
  void Refuse(uint64_t session);
  void Swap(const ipc::control::Swap& swap);

  DaemonCore core_;
  SimLanes lanes_{&core_};
  const StartWorker start_;
  std::deque<scheduler::Action> to_do_;
  std::deque<scheduler::Event> held_;
  bool performing_ = false;
  std::set<uint32_t> upgrading_;  // workers whose sessions are to move once there is another
};

}  // namespace protocol
