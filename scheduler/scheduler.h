// Decisions about sessions as pure functions: OnEvent(state, event, now) -> actions.
//
// No clock, lock, I/O or CUDA: lanewayd performs the actions, a simulator performs them in virtual
// time, property tests drive them from one seed. event.h says what may happen and what may be asked
// for, state.h what is known, policy.h what a policy decides. After Salus, sections 2.3.3 and 2.4
// (lanes, algorithm 2.1, policies), with growth, merging and swapping of our own.
//
// Life of a session: SessionArrived -> Admit + AssignLane (or Queue, Reject); Runnable -> Grant
// when its turn comes; Revoke -> Switched hands its lane to a published successor; SessionLeft. A
// session is admitted at most once; a lane has one holder; nothing is granted twice. Thread safety:
// a State belongs to one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/event.h"
#include "scheduler/policy.h"
#include "scheduler/state.h"

namespace scheduler {

// What an event does to the state, and what follows from it. `now_us` is any monotonic time.
// Events about unknown sessions and lanes are ignored: they may have been refused or be gone.
std::vector<Action> OnEvent(State* state, const Event& event, int64_t now_us);

// True when the session rests, and its memory is on the device and may leave it: for Dismissed.
bool MayLeave(const State& state, const Session& session);

// When to send Timer, at the latest; kUnlimited: not needed.
int64_t NextTimerUs(const State& state);

}  // namespace scheduler
