// Why a session does not run right now: the chain of reasons, from its own to the one that can end
// it, and the same as a sentence ("waits for 1.2 GiB of lane memory; job 4 holds lane 2 until its
// iteration ends, about 80 ms"). Pure; for `laneway why`, for Queue and for Wait.
#pragma once

#include <string>
#include <vector>

#include "scheduler/state.h"

namespace scheduler {

enum class Reason {
  kUnknown,  // no such session
  kRuns,     // it has its lane and work
  kIdle,     // it has no work
  kEnding,
  kPaused,
  kNoPlace,      // all `count` of sessions_max are taken
  kUserPlace,    // `used` of its user's `quota` of sessions are taken
  kMemory,       // `bytes` of the device's
  kUserMemory,   // `bytes` more than its user's `quota` leaves, of which `used` is taken
  kMemoryOrder,  // there is enough, and others are before it
  kSwapping,     // its memory is on its way
  kLaneHeld,     // `lane` by `session` of `job`, for about `us` more
  kLaneClosing,  // `lane` is being made smaller or merged
  kRank,         // `count` sessions are before it under the policy
  kWidth,        // the policy runs no more lanes at once; `session` of `job` runs
  kGang,         // `count` ranks of its job are not ready
  kDeviceLost,
  kMoreComing,   // `bytes` are on their way out of the device
  kMemoryHeld,   // most of the memory is `session`'s of `job`
  kNoSwapSpace,  // the host has no room for that: `bytes` in all
};

struct Cause {
  Reason reason = Reason::kUnknown;
  int64_t bytes = 0;
  LaneId lane = 0;
  SessionId session = 0;
  uint64_t job = 0;
  int64_t us = 0;  // how long it may take; 0: not known
  int64_t count = 0;
  int64_t used = 0;
  int64_t quota = 0;
};

// Never empty; [0] is the session's own.
std::vector<Cause> Why(const State& state, SessionId session, int64_t now_us);
// "waits for ...": no capital, no full stop.
std::string Sentence(const std::vector<Cause>& chain);

std::string Bytes(int64_t bytes);  // "1.2 GiB"
std::string Duration(int64_t us);  // "80 ms"

}  // namespace scheduler
