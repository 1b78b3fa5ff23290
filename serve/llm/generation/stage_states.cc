#include "serve/llm/generation/stage_states.h"

#include <algorithm>

namespace serve::llm {

bool StageStates::OnProgress(size_t stage, const Progress& progress) {
  progress_[stage] = progress;
  return !ready_[stage].has_value();
}

bool StageStates::OnReady(size_t stage, const Ready& ready) {
  if (ready_[stage].has_value()) return false;
  ready_[stage] = ready;
  return std::all_of(ready_.begin(), ready_.end(), [&ready](const std::optional<Ready>& other) {
    return !other.has_value() ||
           (other->context_max == ready.context_max && other->vocabulary == ready.vocabulary &&
            other->width_columns == ready.width_columns &&
            other->width_multiples == ready.width_multiples);
  });
}

Progress StageStates::progress() const {
  Progress sum;
  for (const Progress& each : progress_) {
    sum.done += each.done;
    sum.of += each.of;
  }
  return sum;
}

std::optional<Ready> StageStates::ready() const {
  std::optional<Ready> all;
  for (const std::optional<Ready>& each : ready_) {
    if (!each.has_value()) return std::nullopt;
    if (!all.has_value()) all = each;
    all->blocks = std::min(all->blocks, each->blocks);
  }
  return all;
}

}  // namespace serve::llm
