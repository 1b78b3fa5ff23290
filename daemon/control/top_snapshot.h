// Sessions at this moment, for people: scheduler, counters and page in one view.
// Thread safety: stateless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/control/children.h"
#include "daemon/control/iteration_sampler.h"
#include "daemon/control/journal.h"
#include "daemon/control/session_table.h"
#include "scheduler/scheduler.h"

namespace control {

struct TopInput {
  const Children& children;
  const SessionTable& sessions;
  const scheduler::State& state;
  const IterationSampler& sampler;
  const DeviceUse& use;
  int64_t now_us = 0;
};

struct SessionView {
  const Session* session = nullptr;  // never null in a result of ViewsOf
  std::string state;                 // "runs", "waits", "idle", "paused", ... or the phase's name
  std::string wait;  // the reason of a wait, in a word or two; empty: it does not wait
  Figures figures;
  uint64_t lane = 0;
  uint64_t rank = 0;  // place in the order of the policy, 1 is first; 0: it has none
  uint64_t persistent_bytes = 0;
  uint64_t ephemeral_bytes = 0;
  uint64_t device_bytes = 0;  // that the keeper knows of
  uint64_t waiting_us = 0;    // how long the present wait has lasted
  uint64_t busy_us = 0;       // for how long it has had the device, as the policy counts it
};

// In the order of session numbers. `input` outlives it.
std::vector<SessionView> ViewsOf(const TopInput& input);

// {"ok":true, "now_us", "policy", "devices", "sessions"}: figures that change with every look.
std::string TopJson(const TopInput& input);

// {"ok":true, "last", "lost", "events":[...]}: a part of the journal; ask again with its last
// event's number until there are no more.
std::string JournalJson(const Journal& journal, uint64_t after, size_t events_max);

}  // namespace control
