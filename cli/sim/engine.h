// A discrete-event simulation of one device under the production scheduler.
//
// The engine plays everything but the scheduler: programs that arrive, ask for memory and iterate,
// the worker that hands a lane over at a boundary, the device that is shared by the lanes, and
// transfers that swapping needs. Every decision (who is let in, which lane, who runs, who is
// swapped out) is scheduler::OnEvent's. Times are microseconds of virtual time. Deterministic: the
// same experiment gives the same outcome. Thread safety: stateless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/sim/job.h"

namespace sim {

// What the scheduler is told of a job when it arrives.
enum class Knowledge {
  kExact,     // how long it runs (the oracle), what memory it needs
  kDeclared,  // its declared_iterations
  kLearned,   // what earlier runs of the same command needed, and declared_iterations
  kNothing,
};

struct Device {
  int64_t memory_mib = 16384;
  int64_t switch_us = 50;      // from one session's last op to the next one's first
  double swap_gib_per_s = 12;  // between device and host
};

// Bounds of the scheduler that change what comes out; below 0: the scheduler's own.
struct Bounds {
  double slice_ms = -1;
  double starvation_s = -1;
  int64_t lanes_max = -1;
  int64_t swap_mib = -1;
};

struct Experiment {
  std::vector<Job> jobs;
  std::string policy = "fifo";
  Device device;
  Bounds bounds;
  Knowledge knowledge = Knowledge::kExact;
  uint64_t seed = 1;    // of the requests' times
  bool record = false;  // segments and memory: for drawings and tests
};

struct JobOutcome {
  Job job;
  int64_t arrival_us = 0;
  int64_t admitted_us = -1;
  int64_t first_run_us = -1;
  int64_t end_us = -1;  // -1: it never came to its end, `reason` says why
  int64_t turns = 0;    // how often it was given a lane to compute in
  int64_t swaps = 0;
  std::string reason;
  std::vector<int64_t> latency_us;  // of each request
};

enum class Doing { kIterating, kSwapping };

// What a job did in a piece of time, uninterrupted.
struct Segment {
  size_t job = 0;  // index in Outcome::jobs
  uint32_t lane = 0;
  Doing doing = Doing::kIterating;
  int64_t begin_us = 0;
  int64_t end_us = 0;
  double begin_iteration = 0;
  double end_iteration = 0;
};

struct MemoryPoint {  // from this time on
  int64_t time_us = 0;
  int64_t persistent_bytes = 0;  // resident
  int64_t lane_bytes = 0;
};

struct Outcome {
  std::string policy;
  std::vector<JobOutcome> jobs;  // in the order of arrival
  std::vector<Segment> segments;
  std::vector<MemoryPoint> memory;
  int64_t capacity_bytes = 0;
  int64_t begin_us = 0;
  int64_t end_us = 0;
  double busy_us = 0;
  double computing_us = 0;
  int64_t switches = 0;
  int64_t grants = 0;
  int64_t revokes = 0;
  int64_t swaps = 0;
  int64_t lanes_max = 0;
  int64_t admitted_max = 0;
  int64_t events = 0;
};

// InvalidArgument: no such policy. Internal: the scheduler left jobs without a grant forever, or
// broke the safety condition (a defect; the message names the first such job).
absl::StatusOr<Outcome> Simulate(const Experiment& experiment);

}  // namespace sim
