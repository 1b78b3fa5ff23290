// How long a refused client had better wait: the work that waits, over the rate at which work was
// done lately.
//
// The rate is of tokens over the time for which steps were in flight, so that an idle engine does
// not look slow. Older steps count less and less. Thread safety: one thread at a time.
#pragma once

#include <cstdint>

namespace scheduler::batching::iteration {

class RetryAfter {
 public:
  static constexpr int64_t kLeastS = 1;
  static constexpr int64_t kMostS = 60;

  // A step computed so many tokens. `begun_us`: when it began, or the step before it ended,
  // whichever was later.
  void OnStep(int64_t tokens, int64_t begun_us, int64_t now_us);
  // For so many waiting tokens; kLeastS before the first step.
  int64_t Seconds(int64_t waiting_tokens) const;

 private:
  double tokens_ = 0;
  double us_ = 0;
};

}  // namespace scheduler::batching::iteration
