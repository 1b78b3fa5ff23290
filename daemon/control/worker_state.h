// How far a worker is, as lanewayd sees it, and which state may follow which.
//
//     starting -> ready -> leaving -> retired -> (its process has ended)
//
// An adopted worker begins with listing. A worker leaves for an upgrade, and comes back to ready
// when the upgrade fails. The process of a worker may end in any state. Thread safety: stateless.
#pragma once

namespace control {

enum class WorkerState {
  kStarting,  // its process was started, and does not serve yet
  kListing,   // adopted: it still reports the sessions and memory that it holds
  kReady,     // takes sessions
  kLeaving,   // takes no more sessions, and keeps those that it has
  kRetired,   // is to end: it was told to, or will be killed
};

bool IsLegal(WorkerState from, WorkerState to);

}  // namespace control
