// The daemon as the commands see it: is there one, start one, ask it something.
//
// Every failure is one sentence for people. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipc/options.h"

namespace cli {

// Whether a daemon lives (or is about to) in this runtime directory: whether its lock is held.
bool DaemonLives(const std::string& runtime_dir);

// Whether a keeper or worker of an earlier daemon is still there.
bool LeftoversLive(const std::string& runtime_dir);

// Starts lanewayd with these options unless one lives, and waits, bounded, until it serves.
absl::Status EnsureDaemon(const ipc::Options& options);

// Sends {"command": ...} and returns the reply's text. NotFound: no daemon. FailedPrecondition: the
// daemon refuses, with its sentence.
absl::StatusOr<std::string> Ask(const std::string& runtime_dir, const std::string& request,
                                int64_t timeout_us);

struct Job {
  uint64_t number = 0;
  std::string ticket;             // for its programs (ipc/job.h)
  std::string device;             // what the daemon serves: cuda or soft
  std::vector<unsigned> devices;  // those that the job may use; empty: all
};

// The job for a new `laneway run` of `command`, with the attributes that `options` give it; starts
// a daemon when there is none. Run by a program that is itself run under Laneway, it is a part of
// that one's job.
absl::StatusOr<Job> NewJob(const ipc::Options& options, const std::vector<std::string>& command);

// How it ended, for the history. A daemon that does not answer soon is not waited for.
void TellExit(const std::string& runtime_dir, uint64_t job, int code);

}  // namespace cli
