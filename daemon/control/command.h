// A request of the control plane: a JSON object such as {"command":"why","id":3}. Thread safety:
// stateless.
#pragma once

#include <cstdint>
#include <string>

#include "ipc/scheduling_terms.h"

namespace control {

struct Command {
  std::string name;
  bool force = false;               // stop
  uint64_t id = 0;                  // a job
  std::string text;                 // policy: its name; job: the command; trace: what to do
  uint64_t pid = 0;                 // job: of its `laneway run`
  uint64_t code = 0;                // exited: as a shell says it
  std::string ticket;               // job: of the job that its `laneway run` is a part of
  uint64_t bytes = 0;               // limit; job: its limit, 0: none given
  uint64_t value = 0;               // share, priority; trace: its number, or whether in detail
  uint64_t after = 0;               // journal: the last event that is known
  ipc::SchedulingTerms scheduling;  // job
};

// False for anything that is not a JSON object with a command in it, or whose members have other
// types than these.
bool ParseCommandUntrusted(const std::string& text, Command* command);

}  // namespace control
