// Decisions about sessions as pure functions: OnEvent(state, event, now) -> actions.
//
// No clock, lock, I/O or CUDA: lanewayd performs the actions, a simulator may perform them in
// virtual time, and property tests drive them from one seed. Events and actions of lanes, grants
// and swapping come with lanes; today's decide who is let in. Invariants, asserted: a session is
// admitted at most once, and never are more admitted than limits say. Thread safety: values; a
// Scheduler belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace scheduler {

using SessionId = uint64_t;

// --- what happens
// ----------------------------------------------------------------------------------
struct SessionArrived {
  SessionId session = 0;
  uint64_t job = 0;
};
struct SessionEnding {  // its program is gone, its place not yet free
  SessionId session = 0;
};
struct SessionLeft {
  SessionId session = 0;
};
using Event = std::variant<SessionArrived, SessionEnding, SessionLeft>;

// --- what to do
// ------------------------------------------------------------------------------------
struct Admit {
  SessionId session = 0;
};
struct Queue {
  SessionId session = 0;
  std::string reason;
};
struct Reject {
  SessionId session = 0;
  std::string reason;
};
using Action = std::variant<Admit, Queue, Reject>;

// --- what is known
// ---------------------------------------------------------------------------------
struct Limits {
  unsigned sessions_max = 0;
};

enum class Phase { kQueued, kAdmitted, kEnding };

struct Session {
  uint64_t job = 0;
  Phase phase = Phase::kQueued;
  uint64_t arrival = 0;  // position in the order of arrival
  int64_t arrived_us = 0;
};

struct State {
  Limits limits;
  std::map<SessionId, Session> sessions;
  uint64_t arrivals = 0;

  unsigned CountAdmitted() const;  // whoever holds a place: admitted and ending
  unsigned CountEnding() const;
};

// A policy orders those who wait. One file per policy.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual const char* name() const = 0;
  // The queued session that gets the next free place; REQUIRES: at least one is queued.
  virtual SessionId Next(const State& state, int64_t now_us) const = 0;
};

// Null when there is no policy of this name.
std::unique_ptr<Policy> MakePolicy(const std::string& name);
// "fifo, ..." for messages.
std::string PolicyNames();

// What an event does to the state, and what follows from it under the policy. `now_us` is any
// monotonic time. Events about unknown sessions are ignored: they may have been refused.
std::vector<Action> OnEvent(State* state, const Policy& policy, const Event& event, int64_t now_us);

}  // namespace scheduler
