// What a simulation comes to, in figures. Thread safety: stateless.
#pragma once

#include <string>
#include <vector>

#include "cli/sim/engine.h"

namespace sim {

// The smallest value that at least `percent` of all reach or stay under (nearest rank); 0: none.
double Percentile(std::vector<double>* values, double percent);

struct Distribution {
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};
Distribution DistributionOf(std::vector<double> values);

struct Summary {
  std::string policy;
  int64_t jobs = 0;             // that finished
  int64_t rejected = 0;         // that never ran to their end
  double makespan_s = 0;        // first arrival to last end
  Distribution queueing_s;      // arrival to first run
  Distribution jct_s;           // arrival to end
  Distribution slowdown;        // completion over what it needs alone
  Distribution latency_ms;      // of requests, from when they are there; nothing without requests
  double latency_alone_ms = 0;  // what requests take on an idle device
  double utilisation = 0;       // share of the makespan for which the device computed
  double computing = 0;         // share of the makespan with a session in an iteration
  int64_t switches = 0;         // a lane passed from one session to another
  int64_t grants = 0;
  int64_t revokes = 0;
  int64_t swaps = 0;
  int64_t lanes_max = 0;
  int64_t admitted_max = 0;
  int64_t events = 0;
};
Summary Summarise(const Outcome& outcome);

}  // namespace sim
