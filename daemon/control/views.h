// The views of lanewayd that people read: answers to status, top, journal and why, and the page of
// metrics. A view changes no other part, with one exception: for fresh figures it has
// the counters of the sessions read first.
//
// The keeper's usages are as of the last Children::RefreshUsage(). Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "daemon/control/children.h"
#include "daemon/control/observers.h"
#include "daemon/control/session_table.h"
#include "daemon/control/top_snapshot.h"
#include "ipc/options.h"
#include "scheduler/state.h"

namespace control {

class Views {
 public:
  struct Parts {
    const ipc::Options* options;
    const Children* children;
    const SessionTable* sessions;
    const scheduler::State* state;
    Observers* observers;
  };
  // The parts outlive this object. `now_us`: a monotonic clock.
  Views(const Parts& parts, std::function<int64_t()> now_us);

  std::string Status() const;
  std::string Top() const;
  std::string Journal(uint64_t after) const;  // a part of it: ask again from its last event
  std::string Why(uint64_t job) const;        // 0: of each job
  std::string Metrics() const;

 private:
  TopInput Snapshot() const;
  std::string WhyOf(const Session& session) const;

  const Parts parts_;
  const std::function<int64_t()> now_us_;
};

}  // namespace control
