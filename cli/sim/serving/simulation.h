// A batcher and a modelled engine in virtual time. The batcher is the one that serves.
//
// The engine has stages, each of which takes its share of a step's time and one step at a time, in
// order (Orca, Fig. 4.6a). A mode that waits for its step has the stages work one after the other.
// Thread safety: stateless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/sim/serving/costs.h"
#include "cli/sim/serving/requests_trace.h"
#include "scheduler/batching/iteration/state.h"

namespace sim::serving {

struct Engine {
  int64_t stages = 1;
  int64_t kv_tokens = 1 << 20;  // that its memory has room for
};
struct Served {
  std::string mode;
  std::vector<double> token_ms;  // latency over tokens of the answer, of each answered request
  std::vector<double> first_ms;  // until the first token is sampled
  std::vector<double> next_ms;   // a token after the first one, of answers of two tokens or more
  int64_t refused = 0;
  double seconds = 0;  // from the first arrival to the last answer
  scheduler::batching::iteration::Counters counters;

  double per_s() const { return static_cast<double>(token_ms.size()) / seconds; }
};

// The value below which a share of the values are; 0 without values.
double Quantile(std::vector<double> values, double share);

// REQUIRES: a mode of ModeNames(); requests by arrival, at least one.
Served Serve(const std::string& mode, scheduler::batching::iteration::Options options,
             const Engine& engine, const Costs& costs, const std::vector<TracedRequest>& requests);

}  // namespace sim::serving
