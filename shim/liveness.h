// Whether the worker process still lives, asked by a client that waits long. A pid alone does not
// tell: a zombie and a reused pid answer too, so the start time is compared with the one at
// connect. Thread safety: const after construction.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace shim {

class Liveness {
 public:
  Liveness() = default;
  explicit Liveness(pid_t pid);
  // True also when the process can't be seen from here (another pid namespace): lanewayd tells
  // then.
  bool Alive() const;

 private:
  pid_t pid_ = 0;
  uint64_t start_ticks_ = 0;  // 0: can't be seen
};

}  // namespace shim
