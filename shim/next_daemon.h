// The wait for the lanewayd that starts after the present one has ended.
//
// A daemon makes its socket elsewhere, listens, and renames the socket into the runtime directory
// (ipc::ListenAt). A client therefore waits for changes of that directory and then says hello; it
// does not try again and again. Thread safety: one thread uses an object.
#pragma once

#include <cstdint>
#include <string>

#include "ipc/unique_fd.h"

namespace shim {

class NextDaemon {
 public:
  // A program may have used up its inotify instances, and the directory itself may be replaced. A
  // caller of Wait() asks the daemon once in this time though no change was seen.
  static constexpr int64_t kLookAgainUs = 1'000'000;

  // Watches the runtime directory from here on.
  explicit NextDaemon(const std::string& runtime_dir);

  // True: a file was put into the directory since the last call or, at the first call, since the
  // construction. False: none was put there within `timeout_us`.
  bool Wait(int64_t timeout_us);

 private:
  ipc::UniqueFd changes_;  // invalid: cannot watch, each Wait() takes its whole time
};

}  // namespace shim
