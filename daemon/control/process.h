// A keeper or worker as lanewayd sees it: started here, or found alive by a daemon that replaces
// another.
//
// A process has ended when its pidfd says so, and not when its connection is closed. Thread safety:
// one thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ipc/unique_fd.h"

namespace control {

struct Process {
  pid_t pid = 0;
  ipc::UniqueFd pidfd;
  ipc::UniqueFd connection;  // control messages; invalid once closed
  bool is_child = false;     // ours to reap
};

struct ProcessPlan {
  std::string path;
  std::vector<std::string> arguments;  // without the program's name; --control-fd is added
  std::string runtime_dir;
  std::string log_path;  // its stdout and stderr, appended
};

// Starts the program in a session of its own, without the facades in its environment. The error is
// a sentence.
absl::StatusOr<Process> StartProcess(const ProcessPlan& plan);

// Connects to a process that listens at `socket_path` and watches it.
absl::StatusOr<Process> FindProcess(const std::string& socket_path);

// How it ended, for the log: "exit code 1", "signal 9". Reaps a child. For a process that is no
// child: "ended".
std::string Reap(const Process& process);

void Kill(const Process& process);

}  // namespace control
