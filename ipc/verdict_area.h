// Where lanewayd and a client tell each other of replay verdicts, in the session's file.
//
// lanewayd writes `known` before a client has the file. The client writes into `told`, in a circle,
// and then counts ClientWords::verdicts_told, which lanewayd looks at now and then. A client may
// write anything: lanewayd takes over sound verdicts alone, and a wrong one costs its user's
// programs time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ipc/calls/limits.h"
#include "ipc/replay_verdict.h"

namespace ipc {

// A verdict that a client tells lanewayd of.
struct ToldVerdict {
  enum Kind : uint64_t {
    kMeasured = 1,  // the session has compared
    kTaken = 2,     // the session goes by a verdict of `known`
  };
  ReplayVerdict verdict;
  uint64_t kind = 0;  // Kind; untrusted until it is looked at
};

struct VerdictArea {
  static constexpr uint32_t kTold = 16;

  uint64_t known_count;  // at most kReplayVerdictsMax
  ReplayVerdict known[limits::kReplayVerdictsMax];
  ToldVerdict told[kTold];  // the one with number n, from 0, is told[n % kTold]
};

}  // namespace ipc
