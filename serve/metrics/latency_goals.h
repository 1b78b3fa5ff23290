// How long an answer may take, and how many answers took no longer (SLO attainment).
//
// A goal is the most milliseconds of one time of an answer: `ttft` to its first token, `tpot` a
// token after the first, on average, and `e2el` to its end. Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "serve/metrics/registry.h"

namespace serve::metrics {

// Milliseconds by the names above.
using LatencyGoals = std::map<std::string, double>;
using LatencyTimes = std::map<std::string, double>;

// "ttft:500,tpot:100"; none of an empty text. InvalidArgument, one sentence.
absl::StatusOr<LatencyGoals> ParseLatencyGoals(const std::string& text);

// The times of an answer of `tokens` tokens, in microseconds of one clock. An answer of one token
// has no tpot. REQUIRES: tokens > 0.
LatencyTimes TimesOfAnswer(int64_t asked_us, int64_t first_us, int64_t last_us, int64_t end_us,
                           int64_t tokens);

// A goal for which there is no time is met.
bool MeetsGoals(const LatencyTimes& times, const LatencyGoals& goals);

// The series of one model. Without goals there are none.
class Attainment {
 public:
  Attainment(Registry* registry, const Labels& labels, LatencyGoals goals);
  // An answer is whole.
  void CountAnswer(const LatencyTimes& times) { Count(MeetsGoals(times, goals_)); }
  // A request was refused for load, or failed: it met no goal.
  void CountMiss() { Count(false); }

 private:
  void Count(bool met);

  LatencyGoals goals_;
  Counter* counted_ = nullptr;
  Counter* met_ = nullptr;
  Gauge* ratio_ = nullptr;
};

}  // namespace serve::metrics
