// srtf: shortest remaining time first, preemptive (Salus 2.4.2). Remaining time is what the user
// declared, else what earlier runs of the command took, else least attained service: a job that has
// run for long will run for long.
#include <cstdlib>

#include "scheduler/policies.h"

namespace scheduler {
namespace {

struct Remaining {
  int64_t us = 0;
  bool known = false;
};

Remaining RemainingOf(const Session& session) {
  const int64_t each =
      session.iteration_us > 0 ? session.iteration_us : session.about.estimate.iteration_us;
  if (session.about.iterations > session.iterations_done && each > 0) {
    return {(session.about.iterations - session.iterations_done) * each, true};
  }
  const int64_t total = session.about.estimate.total_us;
  // Past its estimate it should have ended already: it is taken to need what it has overrun by.
  if (total > 0) return {std::abs(total - session.busy_us), true};
  return {session.busy_us, false};
}

class Srtf : public Policy {
 public:
  const char* name() const override { return "srtf"; }

  int64_t Rank(const State& state, const Session& session) const override {
    return RemainingOf(session).us;
  }
  bool Preempts(const State& state, const Session& waiting, const Session& running,
                int64_t now_us) const override {
    const Remaining left = RemainingOf(running);
    const int64_t since = now_us - std::max(running.granted_us, running.progress_us);
    const int64_t now_left = left.known ? left.us - since : left.us + since;
    return RemainingOf(waiting).us + state.limits.slice_us < now_left;
  }
  int64_t RecheckUs(const State& state, const Session& running) const override {
    return RemainingOf(running).known ? 0 : state.limits.slice_us;
  }
  // A job is admitted as long as it can run alone, whoever is there (Salus 2.4.2).
  bool Displaces(const State& state, const Session& waiting, const Session& resident,
                 int64_t now_us) const override {
    const int64_t margin = state.limits.swap_slice_us;
    return RemainingOf(waiting).us + margin < RemainingOf(resident).us;
  }
};

}  // namespace

const Policy* SrtfPolicy() {
  static const Srtf policy;
  return &policy;
}

}  // namespace scheduler
