// The commands of `laneway run`: job (a run begins: which job it is a part of, and which devices it
// gets) and exited (its program has ended). Thread safety: one thread.
#pragma once

#include <string>
#include <vector>

#include "daemon/control/children.h"
#include "daemon/control/choose_devices.h"
#include "daemon/control/command.h"
#include "daemon/control/job_commands.h"
#include "daemon/control/jobs.h"
#include "daemon/control/observers.h"
#include "daemon/control/session_table.h"

namespace control {

class RunCommands {
 public:
  struct Parts {
    const Children* children;
    const SessionTable* sessions;
    Jobs* jobs;
    Observers* observers;
    JobCommands* job_commands;
  };
  // The parts outlive this object.
  explicit RunCommands(const Parts& parts) : parts_(parts) {}

  // A run that a program of another run starts is a part of the outer run's job. Attributes of the
  // inner run then apply to the whole job. REQUIRES: the keeper is ready. Returns the answer.
  std::string Begin(const Command& command);
  std::string Exited(const Command& command);

 private:
  std::vector<DeviceLoad> DeviceLoads() const;

  const Parts parts_;
};

}  // namespace control
