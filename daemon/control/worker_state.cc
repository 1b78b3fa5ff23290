#include "daemon/control/worker_state.h"

namespace control {

bool IsLegal(WorkerState from, WorkerState to) {
  switch (to) {
    case WorkerState::kStarting:  // an upgrade failed, or an adopted worker does not serve yet
      return from == WorkerState::kListing || from == WorkerState::kLeaving;
    case WorkerState::kListing:
      return false;
    case WorkerState::kReady:
      return from == WorkerState::kStarting || from == WorkerState::kListing ||
             from == WorkerState::kLeaving;
    case WorkerState::kLeaving:
      return from == WorkerState::kStarting || from == WorkerState::kReady;
    case WorkerState::kRetired:
      return from != WorkerState::kRetired;
  }
  return false;
}

}  // namespace control
