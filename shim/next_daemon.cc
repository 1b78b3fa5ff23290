#include "shim/next_daemon.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>

namespace shim {

NextDaemon::NextDaemon(const std::string& runtime_dir)
    : changes_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  if (!changes_.valid()) return;
  // An earlier build's daemon binds its socket in the directory: hence IN_CREATE.
  if (inotify_add_watch(changes_.get(), runtime_dir.c_str(), IN_CREATE | IN_MOVED_TO) < 0)
    changes_.Reset();
}

bool NextDaemon::Wait(int64_t timeout_us) {
  pollfd change{changes_.valid() ? changes_.get() : -1, POLLIN, 0};  // poll() skips a negative one
  const int64_t timeout_ms = std::max<int64_t>(0, (timeout_us + 999) / 1000);
  if (poll(&change, 1, static_cast<int>(timeout_ms)) <= 0) return false;
  alignas(inotify_event) char events[4096];
  while (read(changes_.get(), events, sizeof events) > 0) continue;  // all changes so far are seen
  return true;
}

}  // namespace shim
