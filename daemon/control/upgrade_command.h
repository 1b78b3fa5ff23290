// The command upgrade-worker: performs the steps that Upgrade decides. Thread safety: one thread,
// the loop's.
#pragma once

#include <string>

#include "daemon/control/children.h"
#include "daemon/control/command_server.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_table.h"
#include "daemon/control/upgrade.h"

namespace control {

class UpgradeCommand {
 public:
  struct Parts {
    Children* children;
    const SessionTable* sessions;
    const SchedulerPort* scheduler;
    CommandServer* commands;
  };
  // The parts outlive this object.
  explicit UpgradeCommand(const Parts& parts) : parts_(parts) {}

  // Answers the peer now, or when the upgrade is over.
  void Begin(const std::string& peer);
  // A worker was lost. `sentence`: how.
  void OnWorkerLost(const std::string& sentence) { loss_ = sentence; }
  // Takes the step that is possible now: asks the sessions to leave, gives up because the new
  // worker was lost, or answers because every session has moved or is out.
  void Reconcile();
  // Workers that must not end yet, although they have no session left.
  const std::set<uint32_t>& held() const { return upgrade_.held(); }

 private:
  void Release();
  void Fail(const std::string& sentence);
  void Finish();

  const Parts parts_;
  Upgrade upgrade_;
  std::string loss_;  // of a worker since the last Reconcile(); empty: none was lost
};

}  // namespace control
