// What earlier runs of a command needed, as an estimate for its next run. Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "scheduler/event.h"

namespace sim {

class History {
 public:
  // The estimate for the next run of `command`: all zeros when it never ended before.
  scheduler::Estimate Of(const std::string& command) const;
  // A run has ended, and this is what it needed. Later runs weigh more: half the weight per run.
  void Learn(const std::string& command, const scheduler::Estimate& run);

 private:
  std::unordered_map<std::string, scheduler::Estimate> commands_;
};

}  // namespace sim
