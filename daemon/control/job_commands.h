// People's commands that change jobs: policy, pause, resume, evict, limit, share, priority.
//
// Each becomes an event for the scheduler. Each command returns its answer, as JSON. Thread safety:
// one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/control/command.h"
#include "daemon/control/jobs.h"
#include "daemon/control/observers.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_table.h"

namespace control {

// The sentence for a job that no session has.
std::string NoSuchJob(uint64_t job);

class JobCommands {
 public:
  struct Parts {
    SessionTable* sessions;
    Jobs* jobs;
    SchedulerPort* scheduler;
    Observers* observers;
  };
  // The parts outlive this object.
  explicit JobCommands(const Parts& parts) : parts_(parts) {}

  std::string Policy(const Command& command);
  std::string Pause(const Command& command);  // pause and evict
  // evict --idle: the memory of a job that rests leaves until the job has work.
  std::string Dismiss(const Command& command);
  std::string Resume(const Command& command);
  std::string Limit(const Command& command);
  std::string Terms(const Command& command);  // share and priority

  // Sets the job's terms: for its sessions that run or wait, and for later ones.
  void Change(const ipc::JobTerms& terms);

 private:
  // The job's sessions that still run or wait.
  std::vector<uint64_t> SessionsOf(uint64_t job) const;
  // The error for a command about a job without such sessions.
  std::string NoSessionToChange(uint64_t job) const;
  void Apply(uint64_t session, EventKind kind, const scheduler::Event& event,
             const std::string& text = {});
  void SendPause(uint64_t session, scheduler::Pause pause);
  // An error for a job whose memory can never leave the device; empty: it can.
  std::string WhyFixed(uint64_t job, const std::vector<uint64_t>& sessions) const;

  const Parts parts_;
};

}  // namespace control
