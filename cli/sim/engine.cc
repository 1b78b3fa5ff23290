#include "cli/sim/engine.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/sim/world.h"
#include "scheduler/scheduler.h"

namespace sim {
namespace {

using scheduler::State;

scheduler::Limits LimitsOf(const Experiment& experiment) {
  scheduler::Limits limits;
  limits.sessions_max = static_cast<unsigned>(experiment.jobs.size());
  const Bounds& bounds = experiment.bounds;
  if (bounds.slice_ms >= 0) limits.slice_us = std::llround(bounds.slice_ms * 1e3);
  if (bounds.starvation_s >= 0) limits.starvation_us = std::llround(bounds.starvation_s * 1e6);
  if (bounds.lanes_max >= 0) limits.lanes_max = static_cast<unsigned>(bounds.lanes_max);
  if (bounds.swap_mib >= 0) limits.swap_bytes = bounds.swap_mib << 20;
  return limits;
}

void Tell(const scheduler::Event& event, int64_t now_us, State* state, World* world,
          Outcome* outcome) {
  ++outcome->events;
  for (const scheduler::Action& action : scheduler::OnEvent(state, event, now_us)) {
    world->Perform(action);
  }
}

// Everything that the world has to tell, and what follows from it at the same time.
void TellAll(int64_t now_us, State* state, World* world, Outcome* outcome) {
  scheduler::Event event;
  while (world->TakeEvent(&event)) Tell(event, now_us, state, world, outcome);
}

absl::Status Run(State* state, World* world, Outcome* outcome) {
  while (!world->AllEnded()) {
    const int64_t timer_us = scheduler::NextTimerUs(*state);
    const int64_t now_us = std::min(world->NextUs(), timer_us);
    if (now_us >= scheduler::kUnlimited) return absl::InternalError(world->Stalled());
    world->Advance(now_us);
    world->ReportProgress();
    TellAll(now_us, state, world, outcome);
    if (timer_us <= now_us) {
      Tell(scheduler::Timer{}, now_us, state, world, outcome);
      TellAll(now_us, state, world, outcome);
    }
    if (!world->broken().empty()) return absl::InternalError(world->broken());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Outcome> Simulate(const Experiment& experiment) {
  if (scheduler::FindPolicy(experiment.policy) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("there is no policy '", experiment.policy,
                                                   "'; policies are ", scheduler::PolicyNames()));
  }
  Outcome outcome;
  outcome.policy = experiment.policy;
  World world(experiment, &outcome);
  State state(experiment.policy, LimitsOf(experiment));
  Tell(scheduler::CapacityChanged{0, outcome.capacity_bytes, 0, 0}, 0, &state, &world, &outcome);
  const absl::Status ran = Run(&state, &world, &outcome);
  if (!ran.ok())
    return absl::Status(ran.code(), absl::StrCat(experiment.policy, ": ", ran.message()));
  world.Finish();
  return outcome;
}

}  // namespace sim
