// Finds the only session there is, and the messages that its worker needs about that.
//
// The only session does not report idle periods under 50 ms (daemon/worker/gate.h). So its worker
// is told that the session is the only one, and is told the contrary before lanewayd decides
// anything about a second session. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/control/session_table.h"

namespace control {

struct LanePlace {
  uint32_t worker = 0;
  uint64_t lane = 0;  // 0: nowhere
  bool operator==(const LanePlace&) const = default;
};

// Where the only session runs. Nowhere when there are several sessions, when none runs, and when
// its program keeps a context of its own.
LanePlace PlaceOfOnly(const std::map<uint64_t, Session>& sessions);

class OnlySession {
 public:
  struct Notice {
    LanePlace place;
    bool alone = false;
  };
  // Messages to send now that the only session is at `now`, in this order. Empty when nothing
  // changed.
  std::vector<Notice> Change(const LanePlace& now);

 private:
  LanePlace told_;
};

}  // namespace control
