// `laneway sim`: jobs from a file or a generator, the production scheduler in virtual time, figures
// and drawings. Thread safety: main().
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "cli/sim/engine.h"
#include "cli/sim/generate.h"
#include "cli/sim/serving/command.h"

namespace sim {

struct Request {
  std::string jobs_file;  // "-": standard input
  std::string policies = "fifo";
  std::string knowledge = "exact";
  std::string generate;  // empty, "lognormal" or "salus"
  LognormalPlan plan;
  Device device;
  Bounds bounds;
  uint64_t seed = 1;
  bool list = false;  // the policies' names
  bool json = false;
  bool table = false;  // a line per job
  std::string timeline_file;
  std::string html_file;
  bool serving = false;  // the subcommand of this name, with a request of its own
  serving::Request serving_request;
};

// Declares the flags; they write to `request`, which outlives `app`.
void AddFlags(CLI::App* app, Request* request);

// Prints, writes files, and returns the exit code: 1 on failure, 2 on wrong usage.
int Simulate(const Request& request);

}  // namespace sim
