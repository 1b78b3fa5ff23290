// Notes what a simulation does, for drawings and tests; does nothing when it isn't wanted. Thread
// safety: one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/sim/engine.h"

namespace sim {

class Recorder {
 public:
  Recorder(bool wanted, Outcome* outcome) : wanted_(wanted), outcome_(outcome) {}

  // A job is busy from now on, with one thing at a time, until End.
  void Begin(size_t job, uint32_t lane, Doing doing, int64_t now_us, double iteration);
  void End(size_t job, int64_t now_us, double iteration);
  void Memory(int64_t now_us, int64_t persistent_bytes, int64_t lane_bytes);

 private:
  bool wanted_;
  Outcome* outcome_;
  std::vector<size_t> open_;  // by job: its last segment, plus one
};

}  // namespace sim
