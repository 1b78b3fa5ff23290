#include "scheduler/batching/iteration/retry_after.h"

#include <algorithm>
#include <cmath>

namespace scheduler::batching::iteration {

void RetryAfter::OnStep(int64_t tokens, int64_t begun_us, int64_t now_us) {
  constexpr double kMemoryUs = 10e6;
  const double took_us = static_cast<double>(std::max<int64_t>(0, now_us - begun_us));
  const double faded = std::exp(-took_us / kMemoryUs);
  tokens_ = tokens_ * faded + static_cast<double>(tokens);
  us_ = us_ * faded + took_us;
}

int64_t RetryAfter::Seconds(int64_t waiting_tokens) const {
  if (tokens_ <= 0) return kLeastS;
  const double seconds = static_cast<double>(waiting_tokens) * us_ / tokens_ / 1e6;
  return static_cast<int64_t>(std::clamp(std::ceil(seconds), double{kLeastS}, double{kMostS}));
}

}  // namespace scheduler::batching::iteration
