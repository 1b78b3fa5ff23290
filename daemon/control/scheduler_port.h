// The scheduler as lanewayd's other parts see it: they apply events, read the state, and one
// executor performs the decisions.
//
// Executing an action may apply more events. Their actions are executed after those that are
// waiting already, in the order in which they were decided, and never inside one another. Before
// lanewayd serves, it does not know how much memory there is and which sessions hold it: until then
// events that give out time or memory are held. Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "daemon/common/event_loop.h"
#include "scheduler/scheduler.h"

namespace control {

class ActionExecutor {
 public:
  virtual ~ActionExecutor() = default;
  // An event is about to be decided. Must not apply events.
  virtual void BeforeEvent() = 0;
  // The scheduler's timer is about to be applied. May apply events.
  virtual void BeforeTimer() = 0;
  virtual void Execute(const scheduler::Action& action) = 0;
};

class SchedulerPort {
 public:
  // A monotonic time in microseconds.
  using Clock = std::function<int64_t()>;

  // `loop` and `executor` outlive this object.
  SchedulerPort(const std::string& policy, const scheduler::Limits& limits, common::EventLoop* loop,
                ActionExecutor* executor, Clock now_us);
  ~SchedulerPort();
  SchedulerPort(const SchedulerPort&) = delete;

  // Decides about the event. Before Serve(), while workers still report the sessions of an earlier
  // lanewayd, only SessionAdopted and LaneFound are decided about: other events wait for
  // ApplyHeld(), in order. A session that left meanwhile would take its lane along before the next
  // session of that lane is reported. A session that has no lane yet is adopted in Serve().
  // Earlier, the lane made for the session could have the number of a lane that a worker reports
  // later.
  void Apply(const scheduler::Event& event);

  void Serve();
  void ApplyHeld();
  bool serving() const { return serving_; }
  // lanewayd ends: the timer is armed no more.
  void Stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  const scheduler::State& state() const { return state_; }
  uint64_t decisions() const { return decisions_; }  // events that were decided about so far

 private:
  void Decide(const scheduler::Event& event);
  void ArmTimer();

  scheduler::State state_;
  common::EventLoop* const loop_;
  ActionExecutor* const executor_;
  const Clock now_us_;
  std::deque<scheduler::Action> to_do_;
  bool executing_ = false;
  uint64_t decisions_ = 0;
  std::vector<scheduler::Event> held_;
  std::vector<scheduler::Event> laneless_;  // adoptions
  bool serving_ = false;
  bool stopped_ = false;
  common::EventLoop::TimerId timer_ = 0;
  int64_t due_us_ = 0;  // of the timer, while there is one
};

}  // namespace control
