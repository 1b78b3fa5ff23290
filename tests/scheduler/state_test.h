// The fixture of tests that give the scheduler one event after the other: its state, a clock that
// each event moves by a microsecond, and jobs of one session.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"

namespace scheduler {

// A session, alone in its job, that is estimated to need so much memory.
inline SessionArrived Job(SessionId id, int64_t persistent = 0, int64_t ephemeral = 0) {
  SessionArrived about = {id, id};
  about.estimate = {persistent, ephemeral};
  return about;
}

class StateTest : public ::testing::Test {
 protected:
  // More sessions may come than a test has.
  explicit StateTest(const std::string& policy) : state_(policy) {
    state_.limits.sessions_max = 100;
  }
  std::vector<Action> On(const Event& event) { return OnEvent(&state_, event, ++now_us_); }
  std::vector<Action> At(int64_t now_us, const Event& event) {
    now_us_ = now_us - 1;
    return On(event);
  }
  const Session& Get(SessionId id) { return state_.sessions.at(id); }

  State state_;
  int64_t now_us_ = 0;
};

}  // namespace scheduler
