// How long a front waits before it starts another engine: longer after each engine in a row that
// has computed nothing. A client waits for at most kMostUs and the time that loading takes. Pure.
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace serve::engine {

class Backoff {
 public:
  static constexpr int64_t kLeastUs = 50'000;
  static constexpr int64_t kMostUs = 3'000'000;

  // An engine was lost, or did not start: how long to wait now.
  int64_t NextUs() {
    const int64_t wait_us = next_us_;
    next_us_ = std::min(2 * next_us_, kMostUs);
    return wait_us;
  }
  // The engine works.
  void Reset() { next_us_ = kLeastUs; }

 private:
  int64_t next_us_ = kLeastUs;
};

}  // namespace serve::engine
