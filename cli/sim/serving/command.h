// `laneway sim serving`: requests to a language model from a trace or a seed, the production
// batchers in virtual time, and how long each took. Thread safety: main().
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "cli/sim/serving/requests_trace.h"
#include "cli/sim/serving/simulation.h"

namespace sim::serving {

struct Request {
  std::string trace;  // a file, "-" or "generated"
  std::string costs_file;
  std::string modes = "all";
  PoissonPlan plan;
  Engine engine;
  scheduler::batching::iteration::Options options;
  bool json = false;
  std::string html_file;
};

// Declares the flags; they write to `request`, which outlives `app`.
// The flags of a plan's lengths; what their helps say begins with `of_what`.
void AddLengthFlags(CLI::App* app, const std::string& of_what, PoissonPlan* plan);
void AddFlags(CLI::App* app, Request* request);

// Prints, writes files, and returns the exit code: 1 on failure, 2 on wrong usage.
int Simulate(const Request& request);

}  // namespace sim::serving
