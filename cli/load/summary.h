// The figures of a load, from its answers. Pure. Thread safety: stateless.
//
// As the benchmarks of vLLM have them: the time to the first token (TTFT), the time per output
// token after the first of a request (TPOT), the gaps between tokens of all requests (ITL), and the
// time to the end (E2EL). Goodput counts the requests that meet every goal.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/load/answer_stream.h"
#include "cli/sim/statistics.h"
#include "serve/metrics/latency_goals.h"

namespace load {

using Goals = serve::metrics::LatencyGoals;

struct Summary {
  int64_t requests = 0;
  int64_t answered = 0;  // whole
  int64_t refused = 0;   // 429 and 503: the server has too much to do
  int64_t failed = 0;    // for other reasons
  int64_t good = 0;      // answered, and every goal met
  double seconds = 0;    // from the first request to the last end
  int64_t prompt_tokens = 0;
  int64_t answer_tokens = 0;
  sim::Distribution ttft_ms;
  sim::Distribution tpot_ms;  // of answers of two tokens or more
  sim::Distribution itl_ms;
  sim::Distribution e2el_ms;
  sim::Distribution refusal_ms;  // how long a refusal took
  double late_ms = 0;            // the longest that a request waited here for a free connection
  std::map<std::string, int64_t> failures;  // sentences, and how often each

  double PerS(int64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};
Summary SummaryOf(const std::vector<Answer>& answers, const Goals& goals);

}  // namespace load
