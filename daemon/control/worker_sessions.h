// The sessions of workers: serves those that wait for a worker, and decides about those whose
// worker reports about them or is lost.
//
// Owns the parts that give sessions a worker, change it, and find out whose work ends workers.
// Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/control/core.h"
#include "daemon/control/moves.h"
#include "daemon/control/offenders.h"
#include "daemon/control/worker_link.h"

namespace control {

class WorkerSessions {
 public:
  // `core` outlives this object.
  explicit WorkerSessions(Core* core);

  WorkerLink* link() { return &link_; }

  // --- reports
  // The worker has taken the session, or refuses it.
  void OnReport(const ipc::control::Attached& attached);
  // The session is out of its worker, which has cleaned up.
  void OnReport(const ipc::control::SessionEnded& ended);
  // The session has left its worker, as it was asked to.
  void OnReport(const ipc::control::SessionReleased& released);
  void OnPoisoned(uint32_t worker, const ipc::control::Poisoned& poisoned) {
    offenders_.OnPoisoned(worker, poisoned);
  }

  // The worker has ended. Programs that lose their session are told the loss's sentence.
  void OnWorkerLost(uint32_t worker, const WorkerLoss& loss);
  // The session has been ending for longer than the timeout.
  void OnOverdue(uint64_t session) { offenders_.OnOverdue(session); }
  // Starts workers for sessions that wait, and hands sessions to workers that are ready.
  void ServeWaiting();

 private:
  std::vector<uint64_t> ConcernedBy(uint32_t worker, bool served) const;
  bool BeginMove(Session* session);
  void LoseWorkerOf(Session* session, uint32_t worker, const std::string& sentence);

  Core* const core_;
  WorkerLink link_;
  Moves moves_;
  Offenders offenders_;
};

}  // namespace control
