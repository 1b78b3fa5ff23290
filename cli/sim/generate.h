// Workloads from a seed.
//
// The 100-job trace behind Salus's Table 2.1 is not published. FitSalusTrace finds traces that are
// like it, by what is known about it from FIFO's row and SRTF's mean completion time, and from
// nothing else: it draws lognormal service times (sigma and the span of arrivals drawn, too), and
// keeps a trace when a single server gives those figures within kFitTolerance. Every other figure
// of the table is then a prediction. Thread safety: stateless.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/sim/job.h"

namespace sim {

struct LognormalPlan {
  int64_t jobs = 100;
  double mean_s = 180;   // of a job, alone on the device; exact for the whole set
  double sigma = 1;      // of the logarithm of that time
  double window_s = 0;   // arrivals, uniformly within; 0: half of what the jobs need in all
  int64_t commands = 0;  // jobs repeat this many distinct ones, each of about one duration; 0: none
  uint64_t seed = 1;
};
// A mix of Salus's workloads, in the order of arrival.
std::vector<Job> GenerateLognormal(const LognormalPlan& plan);

// Service and arrival, in minutes.
struct Trace {
  std::vector<double> arrival;
  std::vector<double> service;
};
struct Completion {
  double mean_jct = 0;
  double p95_jct = 0;
  double makespan = 0;
};
// One server, one job at a time; arrivals in order.
Completion SingleServerFifo(const Trace& trace);
Completion SingleServerSrtf(const Trace& trace);

// What Table 2.1 says, in minutes, and what we fit to: FIFO's row and SRTF's mean.
inline constexpr double kPaperFifoMakespan = 303.4;
inline constexpr double kPaperFifoQueueing = 167.6;
inline constexpr double kPaperFifoMean = 170.6;
inline constexpr double kPaperFifoP95 = 251.1;
inline constexpr double kPaperSrtfMean = 53.4;
inline constexpr double kFitTolerance = 0.03;

struct FittedTrace {
  std::vector<Job> jobs;
  double sigma = 0;
  double window_min = 0;
  int64_t tries = 0;
};
FittedTrace FitSalusTrace(uint64_t seed);

}  // namespace sim
