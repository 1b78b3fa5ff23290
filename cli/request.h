// What was typed, and what the commands that ask lanewayd have in common. Thread safety: main().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipc/options.h"
#include "serve/llm/serve_flags.h"

namespace cli {

// Of record, serve and call.
struct FunctionFiles {
  std::string show;                  // a function whose manifest is shown
  std::vector<std::string> inputs;   // NAME=FILE
  std::vector<std::string> outputs;  // the same
  std::vector<std::string> targets;  // a function, or paths of models
  serve::llm::ServeOptions models;   // how models are served
};

// Where `graph` draws to; empty: nowhere.
struct GraphFiles {
  std::string dot;
  std::string svg;
};

// How `trace`, `graph` and `kernels` watch a running job.
struct Watched {
  bool calls = false;  // of trace
  std::string period;  // for how long; empty: the default
};

struct Request {
  ipc::Options options;
  std::string command;
  std::vector<std::string> program;  // of run and record
  uint64_t id = 0;                   // a job; 0: all, where that has a meaning
  std::string name;                  // of policy; a function's; a part of a call's, of calls
  FunctionFiles function;
  GraphFiles graph;
  std::string out;     // a file to write
  std::string path;    // a file to read, of model; that or a job, of kernels
  uint64_t count = 0;  // of history; 0: all. Of share and priority: the new value
  bool json = false;
  bool force = false;
  bool idle = false;  // evict
  bool once = false;  // of top
  Watched watched;
};

// Prints a sentence to standard error and returns `code`.
int Say(int code, const std::string& sentence);

// Where the daemon of this request is.
std::string DirOf(const Request& request);

// A daemon that was lost while others live on is replaced by whoever asks first.
absl::Status ReplaceLostDaemon(const ipc::Options& options);

// Asks the daemon that runs; every failure is a sentence for people.
absl::StatusOr<std::string> AskDaemon(const Request& request, const std::string& json);

}  // namespace cli
