// Which workers and sessions are in which lane, and when the memory of a lane is given back.
//
// The scheduler assigns lanes; the workers make, share and shrink them. The registry tells workers
// whether a lane is shared and which sessions hold the lane next. It carries orders to shrink to
// the workers that have the lane mapped. It has the keeper free a lane's memory once no session can
// use the lane. The registry remembers its last message to each worker, so each Tell function may
// be called at any time: it sends the changes since. Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "daemon/control/children.h"
#include "daemon/control/only_session.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_table.h"
#include "daemon/control/shrinking.h"

namespace control {

class LaneRegistry {
 public:
  struct Parts {
    const SessionTable* sessions;
    SchedulerPort* scheduler;
    Children* children;
  };
  // The parts outlive this object.
  explicit LaneRegistry(const Parts& parts) : parts_(parts) {}

  // --- the sessions of a lane
  // The session is told of the lane, by this lanewayd or an earlier one: it may make memory there.
  void AddGuest(uint64_t lane, uint64_t session) { guests_[lane].insert(session); }
  // The session has left the table and the scheduler.
  void OnSessionGone(uint64_t session);
  // Tells workers which of their lanes other workers have, too. Before a worker gets a lane: a
  // worker that loses lanewayd opens a lane unless it knows that the lane is shared.
  void TellShared();
  // Tells the worker of the only session that it is the only one. Before each event is decided: a
  // session that is alone no more has its unreported idle periods told first.
  void TellAlone();
  // Tells workers all that has changed since they were told.
  void Reconcile();
  // A worker passes a lane on to its own sessions without asking. Each worker is told of the
  // successors up to the first session of another worker.
  void Publish(const scheduler::Successors& successors) const;
  // A lane has changed hands in `worker`: the other workers look at it. The memory of a lane that
  // has ended goes.
  void OnChanged(uint32_t worker, const ipc::control::LaneChanged& changed) const;
  // The worker may have changed any lane without saying so. Its orders to shrink are repeated.
  void OnWorkerLost(uint32_t worker);

  // --- a lane's memory
  // An order of the scheduler. Only a shrink needs a word: a worker grows a lane when it enters.
  void Resize(const scheduler::ResizeLane& resize);
  void OnShrunk(uint32_t worker, const ipc::control::LaneShrunk& shrunk);
  // Has the memory freed that the keeper holds for sessions and lanes of an earlier lanewayd that
  // are gone: they ended without a lanewayd, or together with their worker. What it holds of other
  // lanes is counted. Once, when lanewayd begins to serve.
  void ReleaseUnknownOwners();
  // The session has ended: its own memory and its own lane are freed.
  void ReleaseSession(uint64_t session) const;
  // The session has left its worker. In its next worker the session enters the lane that it is told
  // of.
  void ReleaseOwnLane(uint64_t session) const;

 private:
  std::set<uint32_t> WorkersOf(uint64_t lane) const;  // of its sessions that run
  bool Exists(uint64_t lane) const;
  bool IsAwaited(uint64_t lane) const;
  void ForwardChange(uint32_t worker, const ipc::control::LaneChanged& changed) const;
  void ReleaseIfEnded(uint64_t lane) const;
  void Shrink(const Shrinking::Order& order);
  void CountFound();
  // Sends an order to every worker. Returns those that have to answer it.
  std::set<uint32_t> TellAllWorkers(const ipc::control::ResizeLane& order) const;
  void Release(uint64_t lane) const;

  const Parts parts_;
  Shrinking shrinking_;
  std::set<uint32_t> lost_;                         // workers whose orders are to be repeated
  std::map<uint64_t, std::set<uint32_t>> workers_;  // by lane, as they were told last
  // Lanes and workers that were told that they share the lane, and not since that they do not.
  std::set<std::pair<uint64_t, uint32_t>> believe_shared_;
  std::map<uint64_t, std::set<uint64_t>> guests_;  // by lane: sessions that were ever told of it
  OnlySession only_session_;
};

}  // namespace control
