// pack: as many lanes at once as memory and measured interference allow (Salus 2.4.1); in a lane,
// and for memory, whoever came first.
#include "scheduler/policies.h"

namespace scheduler {
namespace {

constexpr int64_t kForgetUs = 60'000'000;  // a measurement counts for so long
constexpr int64_t kMeasureUs = 1'000'000;
constexpr double kWorthIt = 0.98;  // of the throughput with one lane less

class Pack : public Policy {
 public:
  const char* name() const override { return "pack"; }

  int64_t Rank(const State& state, const Session& session) const override {
    return static_cast<int64_t>(session.arrival);
  }
  bool Preempts(const State& state, const Session& waiting, const Session& running,
                int64_t now_us) const override {
    return waiting.arrival < running.arrival;
  }
  bool Displaces(const State& state, const Session& waiting, const Session& resident,
                 int64_t now_us) const override {
    // A session that was let in runs to its end. A newcomer that pushed others out would often not
    // fit even then: they would come back into what was freed, and memory would go in circles.
    return waiting.phase != Phase::kQueued && waiting.arrival < resident.arrival;
  }
  bool DisplacesLater() const override { return false; }
  bool PromisesTurn() const override { return false; }  // it promises the order in each lane
  bool MergesForAdmission() const override { return false; }
  bool Backfills() const override { return true; }

  int64_t MeasuresUs() const override { return kMeasureUs; }
  // One lane more is worth it while all together get more done. What was not measured lately is
  // thought to be.
  unsigned Lanes(const State& state, const Device& device) const override {
    int64_t latest = 0;
    for (const Speed& speed : device.speed) latest = std::max(latest, speed.at_us);
    unsigned width = 1;
    double before = 1;  // one lane alone, in its own speed
    for (unsigned lanes = 2; lanes < device.speed.size(); ++lanes) {
      const Speed& speed = device.speed[lanes];
      const bool fresh = speed.at_us != 0 && latest - speed.at_us < kForgetUs;
      const double together = speed.share * lanes;
      if (fresh && together < before * kWorthIt) return width;
      width = lanes;
      if (fresh) before = together;
    }
    return state.limits.lanes_max;
  }
  // It is tried one lane at a time: where all begin at once, nobody has seen what each of them
  // costs the others.
  unsigned Width(const State& state, const Device& device) const override {
    const size_t tried = std::max<size_t>(1, device.speed.size());
    return static_cast<unsigned>(std::min<size_t>(tried, Lanes(state, device)));
  }
};

}  // namespace

const Policy* PackPolicy() {
  static const Pack policy;
  return &policy;
}

}  // namespace scheduler
