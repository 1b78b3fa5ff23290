// What the engine simulates around the scheduler: programs, worker, device and host link.
//
// The world turns actions into what they bring about, in virtual time, and what happens into
// events. It decides nothing about jobs. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <unordered_map>
#include <vector>

#include "cli/sim/device_model.h"
#include "cli/sim/engine.h"
#include "cli/sim/history.h"
#include "cli/sim/random.h"
#include "cli/sim/recorder.h"
#include "scheduler/event.h"

namespace sim {

class World {
 public:
  // Jobs are in the order of arrival in `outcome`, which the world fills in.
  World(const Experiment& experiment, Outcome* outcome);

  // When the next thing happens by itself; SharedDevice::kNever: never.
  int64_t NextUs() const;
  // Moves the clock and lets happen what happens then. REQUIRES: now <= NextUs().
  void Advance(int64_t now_us);
  // The oldest event that the scheduler has not been told; false: none.
  bool TakeEvent(scheduler::Event* event);
  // Tells of progress since the last time, of all that compute.
  void ReportProgress();

  void Perform(const scheduler::Action& action);

  // Empty, or what is wrong: memory in use beyond what the device has.
  const std::string& broken() const { return broken_; }
  bool AllEnded() const { return ended_ == sessions_.size(); }
  // For those that never end: why, and who is the first of them.
  std::string Stalled() const;
  void Finish();

 private:
  struct Session {
    bool admitted = false;
    bool assigned = false;  // its lane is large enough: it runs as soon as it is granted
    bool granted = false;
    bool revoked = false;
    bool swapped = false;
    bool ended = false;
    bool resident = false;  // its persistent memory was granted
    bool idle = false;      // told so: no request is there
    uint32_t epoch = 0;     // a start of another epoch was cancelled
    scheduler::LaneId lane = 0;
    double done = 0;
    int64_t reported_iterations = 0;
    int64_t reported_us = 0;
    int64_t asked = 0;             // requests made so far
    std::deque<int64_t> requests;  // when those were made that aren't answered
    std::string waits;             // the reason, in the scheduler's words
  };
  struct Lane {
    int64_t bytes = 0;
    std::vector<scheduler::SessionId> successors;
  };
  enum class Kind { kStart, kSwappedOut, kSwappedIn, kRequest };
  struct Later {
    int64_t time_us = 0;
    uint64_t order = 0;
    Kind kind = Kind::kStart;
    scheduler::SessionId session = 0;
    uint32_t epoch = 0;
    bool operator>(const Later& other) const {
      return time_us != other.time_us ? time_us > other.time_us : order > other.order;
    }
  };

  void Do(const scheduler::Admit& action);
  void Do(const scheduler::Queue& action);
  void Do(const scheduler::Reject& action);
  void Do(const scheduler::AssignLane& action);
  void Do(const scheduler::ResizeLane& action);
  void Do(const scheduler::Grant& action);
  void Do(const scheduler::Revoke& action);
  void Do(const scheduler::Successors& action);
  void Do(const scheduler::SwapOut& action);
  void Do(const scheduler::SwapIn& action);
  void Do(const scheduler::GrantMemory& action);
  void Do(const scheduler::RefuseMemory& action);
  void Do(const scheduler::Wait& action);
  void Do(const scheduler::Report& action);

  Session& Of(scheduler::SessionId id) { return sessions_[id - 1]; }
  JobOutcome& JobOf(scheduler::SessionId id) { return outcome_->jobs[id - 1]; }
  const Job& Plan(scheduler::SessionId id) const { return outcome_->jobs[id - 1].job; }
  int64_t PersistentBytes(scheduler::SessionId id) const;
  int64_t EphemeralBytes(scheduler::SessionId id) const;
  scheduler::Estimate EstimateOf(scheduler::SessionId id) const;

  void Arrive(scheduler::SessionId id);
  void AskForLane(scheduler::SessionId id);
  void AskAgain(scheduler::SessionId id);  // schedules its next request
  bool HasWork(const Session& session, scheduler::SessionId id) const;
  void PrepareStart(scheduler::SessionId id);
  void Start(scheduler::SessionId id);
  void AtBoundary(scheduler::SessionId id);
  void StopComputing(scheduler::SessionId id);
  void Report(scheduler::SessionId id);
  void HandOver(scheduler::SessionId id);
  void End(scheduler::SessionId id, bool finished);
  void Happen(const Later& later);
  void After(int64_t delay_us, Kind kind, scheduler::SessionId id, uint32_t epoch);
  void Transfer(Kind kind, scheduler::SessionId id, int64_t bytes);
  void UseMemory(int64_t persistent_bytes, int64_t lane_bytes);
  void ResizeTo(scheduler::LaneId lane, int64_t bytes);

  const Device device_plan_;
  const Knowledge knowledge_;
  Outcome* const outcome_;
  Recorder recorder_;
  Random random_;
  History history_;
  SharedDevice device_;
  std::vector<Session> sessions_;  // session id - 1
  std::map<scheduler::LaneId, Lane> lanes_;
  std::priority_queue<Later, std::vector<Later>, std::greater<Later>> later_;
  std::deque<scheduler::Event> untold_;
  std::vector<std::string> users_;
  std::string broken_;
  int64_t now_us_ = 0;
  uint64_t order_ = 0;
  size_t next_arrival_ = 0;
  size_t ended_ = 0;
  int64_t admitted_ = 0;
  int64_t persistent_bytes_ = 0;
  int64_t lane_bytes_ = 0;
  int64_t link_free_us_[2] = {0, 0};  // to the host, to the device
};

}  // namespace sim
