#include "daemon/control/scheduler_port.h"

#include <algorithm>
#include <utility>

namespace control {

SchedulerPort::SchedulerPort(const std::string& policy, const scheduler::Limits& limits,
                             common::EventLoop* loop, ActionExecutor* executor, Clock now_us)
    : state_(policy, limits), loop_(loop), executor_(executor), now_us_(std::move(now_us)) {}

SchedulerPort::~SchedulerPort() {
  if (timer_ != 0) loop_->Cancel(timer_);
}

void SchedulerPort::Apply(const scheduler::Event& event) {
  const auto* const adopted = std::get_if<scheduler::SessionAdopted>(&event);
  const bool names_lane =
      adopted != nullptr ? adopted->lane != 0 : std::holds_alternative<scheduler::LaneFound>(event);
  if (serving_ || names_lane) {
    Decide(event);
  } else {
    (adopted != nullptr ? laneless_ : held_).push_back(event);
  }
}

void SchedulerPort::Serve() {
  serving_ = true;
  for (const scheduler::Event& event : std::exchange(laneless_, {})) Decide(event);
}

void SchedulerPort::Decide(const scheduler::Event& event) {
  executor_->BeforeEvent();
  ++decisions_;
  const std::vector<scheduler::Action> actions = scheduler::OnEvent(&state_, event, now_us_());
  to_do_.insert(to_do_.end(), actions.begin(), actions.end());
  if (executing_) return;
  executing_ = true;
  while (!to_do_.empty()) {
    const scheduler::Action action = std::move(to_do_.front());
    to_do_.pop_front();
    executor_->Execute(action);
  }
  executing_ = false;
  ArmTimer();
}

void SchedulerPort::ApplyHeld() {
  for (const scheduler::Event& event : std::exchange(held_, {})) Apply(event);
}

void SchedulerPort::ArmTimer() {
  const int64_t due_us = scheduler::NextTimerUs(state_);
  if (timer_ != 0 && due_us == due_us_) return;
  if (timer_ != 0) loop_->Cancel(std::exchange(timer_, 0));
  due_us_ = due_us;
  if (due_us >= scheduler::kUnlimited || stopped_) return;
  timer_ = loop_->After(std::max<int64_t>(0, due_us - now_us_()), [this] {
    timer_ = 0;
    executor_->BeforeTimer();
    Apply(scheduler::Timer{});
  });
}

}  // namespace control
