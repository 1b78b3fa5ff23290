// Policies in a closed loop: sessions that always have work share lanes in virtual time, each
// iteration as long as its session's are. What a policy promises is measured there. Thread safety:
// one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"

namespace scheduler {

class Machine {
 public:
  explicit Machine(const std::string& policy) : state_(policy) {
    state_.limits.sessions_max = 100;
    state_.limits.lanes_max = 1;
    state_.limits.slice_us = 10'000;
    state_.limits.starvation_us = 1'000'000;
    state_.limits.aging_us = 200'000;
  }

  void Add(SessionArrived about, int64_t iteration_us) {
    const SessionId id = about.session;
    iteration_us_[id] = iteration_us;
    waits_us_[id] = now_us_;
    about.job = id;
    Tell(about);
    Tell(Runnable{id});
  }

  // Until `end_us`, or until everybody has done what was declared.
  void Run(int64_t end_us) {
    while (now_us_ < end_us) {
      int64_t next = NextTimerUs(state_);
      SessionId first = 0;
      for (const std::pair<const SessionId, int64_t>& entry : ends_us_) {
        if (entry.second > next || (first != 0 && entry.second >= ends_us_.at(first))) continue;
        first = entry.first;
        next = entry.second;
      }
      if (next >= kUnlimited) return;
      now_us_ = std::max(now_us_, next);
      if (first == 0) {
        Tell(Timer{});
      } else {
        EndIteration(first);
      }
    }
  }

  int64_t busy_us(SessionId id) { return busy_us_[id]; }
  int64_t longest_wait_us() const { return longest_wait_us_; }
  const std::vector<SessionId>& finished() const { return finished_; }
  const std::vector<SessionId>& order() const { return order_; }
  State* state() { return &state_; }
  int64_t now_us() const { return now_us_; }

  void Tell(const Event& event) {
    for (const Action& action : OnEvent(&state_, event, now_us_)) {
      if (const Grant* grant = std::get_if<Grant>(&action)) Begin(grant->session);
    }
  }

 private:
  void Begin(SessionId id) {
    if (order_.empty() || order_.back() != id) order_.push_back(id);
    longest_wait_us_ = std::max(longest_wait_us_, now_us_ - waits_us_[id]);
    ends_us_[id] = now_us_ + iteration_us_.at(id);
  }

  void EndIteration(SessionId id) {
    const int64_t each = iteration_us_.at(id);
    busy_us_[id] += each;
    ends_us_.erase(id);
    Tell(Progress{id, 1, each});
    const Session& session = *state_.Find(id);
    if (session.about.iterations > 0 && session.iterations_done >= session.about.iterations) {
      finished_.push_back(id);
      Tell(SessionLeft{id});
      return;
    }
    if (!session.revoked) {
      ends_us_[id] = now_us_ + each;
      return;
    }
    const LaneId lane = session.lane;
    const std::vector<SessionId> next = state_.lanes.at(lane).published;
    waits_us_[id] = now_us_;
    if (!next.empty()) Begin(next[0]);
    Tell(Switched{lane, id, next.empty() ? 0 : next[0]});
  }

  State state_;
  int64_t now_us_ = 0;
  int64_t longest_wait_us_ = 0;
  std::map<SessionId, int64_t> iteration_us_, ends_us_, busy_us_, waits_us_;
  std::vector<SessionId> finished_, order_;
};

inline SessionArrived Job(SessionId id, int64_t iterations = 0) {
  SessionArrived about = {id};
  about.iterations = iterations;
  return about;
}

}  // namespace scheduler
