// How a program becomes a session, and how it stops being one: from the hello to the scheduler's
// admission, and the end of its process. Between the two its link has it (session_link.h).
//
// Sessions that an earlier lanewayd admitted are taken in as they are (Adopt). Thread safety: one
// thread, the loop's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/control/core.h"
#include "daemon/control/in_process.h"
#include "daemon/control/worker_link.h"
#include "ipc/hello.h"
#include "ipc/socket.h"

namespace control {

class Admission {
 public:
  // All of these outlive this object.
  Admission(Core* core, WorkerLink* worker_link, InProcess* in_process)
      : core_(core), worker_link_(worker_link), in_process_(in_process) {}

  // A program has said hello. Before lanewayd serves, it waits for EnlistWaiting(): sessions that
  // are still to be adopted have numbers that no other session may get.
  void Create(const ipc::Hello& hello, const ipc::Peer& peer, ipc::UniqueFd socket,
              ipc::UniqueFd pidfd);
  // The worker runs the session already. `fds` are the session's (common::SessionFds).
  void Adopt(uint32_t worker, const ipc::control::SessionRecord& record,
             std::vector<ipc::UniqueFd>* fds);
  // All sessions are adopted. From now on no session and no lane gets the number of one of which
  // the keeper has memory. Otherwise the keeper could free memory of the next owner of the number.
  void NoteUsedNumbers();
  // lanewayd serves: programs that came before get sessions.
  void EnlistWaiting();
  size_t waiting() const { return waiting_.size(); }
  // lanewayd ends before it serves. `sentence`: what the programs that wait are told.
  void RefuseWaiting(const std::string& sentence);

  // --- actions
  void Execute(const scheduler::Admit& admit);
  void Execute(const scheduler::Queue& queue);
  void Execute(const scheduler::Reject& reject);

  // Looks for programs that have ended, of which the loop may not have heard yet: their places are
  // then about to come free.
  void NoticeEnding();

 private:
  struct WaitingHello {
    ipc::Hello hello;
    ipc::Peer peer;
    ipc::UniqueFd socket;
    ipc::UniqueFd pidfd;
  };

  ipc::JobTerms JobOf(const ipc::JobTicket& ticket);
  void Enlist(const Session& session);
  SessionLink* LinkOf(ipc::Mode mode) const;
  void Watch(const Session& session);
  void OnSocket(uint64_t id);
  void OnProcessEnded(uint64_t id);

  Core* const core_;
  WorkerLink* const worker_link_;
  InProcess* const in_process_;
  std::vector<WaitingHello> waiting_;  // until lanewayd serves
};

}  // namespace control
