// What keeper and worker have in common as processes: their arguments and their first connection.
//
// lanewayd starts them with `--control-fd=3`, one end of a socket pair; later daemons connect to
// their socket file. Both say Ready or StartFailed on the first connection. Thread safety: used in
// main() only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ipc/control.h"

namespace common {

struct ChildArguments {
  std::string runtime_dir;
  std::string device = "soft";  // auto (keeper only), cuda, soft
  uint32_t number = 0;          // of the worker
  int control_fd = -1;
  bool own = false;               // worker: for one session alone
  int64_t linger_s = 60;          // alone for so long without a daemon: exit
  std::string scrub = "tenants";  // keeper: when memory is zeroed; or always
  int64_t swap_bytes = -1;        // worker: host memory that may hold swapped sessions; -1: half
  int64_t reserve_bytes = -1;     // keeper: device memory left to workers; -1: by kind of device
};

// `--name=value` each. The error names the argument.
absl::StatusOr<ChildArguments> ParseChildArguments(int argc, char** argv);

// True when the daemon that started this process has ended. A keeper or worker ends if it is
// not ready by then, and makes no socket, because the next daemon has started another.
bool DaemonIsGone(int control_fd);

// Tells the parent why this process can't start, and prints it for the log. Returns the exit code.
int FailStart(int control_fd, std::string_view sentence);

// "[time] process: text" on stderr, which lanewayd leads to $RUNTIME/log/.
void Log(std::string_view process, std::string_view text);

}  // namespace common
