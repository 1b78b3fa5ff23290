// Who is alone: the only session there is keeps its short rests to itself (daemon/worker/gate.h),
// so its worker hears that it is, and that it is not any more before anything is decided with
// somebody new. Thread safety: none; one thread.
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

// Where the only session runs, in a worker of ours; nowhere when there are more, or none does.
LanePlace PlaceOfOnly(const std::map<uint64_t, Session>& sessions);

class Alone {
 public:
  struct Word {
    LanePlace place;
    bool alone = false;
  };
  // What is to be told, in this order, once the only session is there; nothing that was told
  // before.
  std::vector<Word> Change(const LanePlace& now);

 private:
  LanePlace told_;
};

}  // namespace control
