// `laneway load URL`. Thread safety: main().
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "cli/sim/serving/requests_trace.h"

namespace load {

struct Request {
  std::string url;
  std::string model;  // empty: the first that the server names
  std::string api_key_file;
  sim::serving::PoissonPlan plan{.requests = 100, .per_s = 0, .prompt_max = 256};  // 0: no limit
  double burstiness = 1;
  std::string trace;  // a file; empty: the plan
  int64_t at_once = 256;
  std::string goals;
  bool chat = false;
  bool stop_at_end = false;
  bool json = false;
  bool profile = false;  // measure a table of costs, in place of a load
};

void AddFlags(CLI::App* app, Request* request);
// The exit status: 0 when every request was answered or refused for load.
int Load(const Request& request);

}  // namespace load
