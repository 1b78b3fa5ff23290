// What a policy decides, given that the scheduler keeps memory safe, lanes exclusive and switches
// at boundaries: who is first, who gives way to whom, and how many lanes run at once.
//
// One file per policy. Policies have no state of their own: what they need is in State. Ranks of
// sessions that wait must stay as they are while they wait (they are kept in order). Thread safety:
// immutable.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/state.h"

namespace scheduler {

class Policy {
 public:
  virtual ~Policy() = default;
  virtual const char* name() const = 0;

  // Smaller is first. Of a session that waits: for a grant, for memory, for admission.
  virtual int64_t Rank(const State& state, const Session& session) const = 0;

  // Whether `running` gives way to `waiting` at its next boundary. Both are on one device.
  virtual bool Preempts(const State& state, const Session& waiting, const Session& running,
                        int64_t now_us) const = 0;

  // How soon Preempts may answer differently without an event; 0: never.
  virtual int64_t RecheckUs(const State& state, const Session& running) const { return 0; }

  // How often Width wants to be told of progress while several lanes run; 0: it doesn't care.
  virtual int64_t MeasuresUs() const { return 0; }

  // Which of two waiting sessions of different lanes is first.
  virtual bool Before(const State& state, const Session& one, const Session& other) const;

  // How many lanes of the device run at once. REQUIRES: >= 1.
  virtual unsigned Width(const State& state, const Device& device) const { return 1; }

  // Over how many of them sessions are spread, be they run at once now or later.
  virtual unsigned Lanes(const State& state, const Device& device) const {
    return Width(state, device);
  }

  // Whether `waiting` may push the memory of `resident`, which could run, to the host.
  virtual bool Displaces(const State& state, const Session& waiting, const Session& resident,
                         int64_t now_us) const = 0;

  // Whether lanes are merged so that another job is admitted.
  virtual bool MergesForAdmission() const { return true; }
  // Whether a job that fits is admitted before an earlier one that doesn't.
  virtual bool Backfills() const { return false; }
  // Whether Limits::starvation_us is a promise.
  virtual bool PromisesTurn() const { return true; }
  // Whether Displaces may change its answer without an event.
  virtual bool DisplacesLater() const { return true; }
};

// A policy lives as long as the program. Null when there is none of this name.
const Policy* FindPolicy(const std::string& name);
// "fifo, srtf, ..." for messages.
std::string PolicyNames();

}  // namespace scheduler
