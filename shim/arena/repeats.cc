#include "shim/arena/repeats.h"

#include <utility>

namespace shim::arena {

void Repeats::OnOp(const Op& op) {
  const size_t at = running_.ops.size();
  if (at == kOpsMax) is_long_ = true;
  for (Known& known : known_) {
    const std::vector<Op>& ops = known.iteration.ops;
    known.is_equal = known.is_equal && !is_long_ && at < ops.size() && ops[at] == op;
  }
  if (!is_long_) running_.ops.push_back(op);
}

uint64_t Repeats::bytes_max() const {
  for (const Known& known : known_) {
    if (known.is_equal) return known.bytes_max;
  }
  return 0;
}

// A shorter iteration than the known one has ended before it.
bool Repeats::Follows() const {
  for (const Known& known : known_) {
    if (known.is_equal && known.iteration.ops.size() == running_.ops.size()) return true;
  }
  return false;
}

const Repeats::Iteration* Repeats::OnBoundary(const Start& next) {
  const bool is_wanted = !is_long_ && !Follows() && running_ == last_ && running_.start == next &&
                         !running_.ops.empty();
  std::swap(last_, running_);
  if (is_long_) last_.ops.clear();
  is_long_ = false;
  running_.start = next;
  running_.ops.clear();
  for (Known& known : known_) known.is_equal = known.iteration.start == next;
  return is_wanted ? &last_ : nullptr;
}

void Repeats::Learn(const Iteration& iteration, uint64_t bytes_max) {
  if (known_.size() == kKnownMax) known_.erase(known_.begin());
  known_.push_back({iteration, bytes_max, iteration.start == running_.start});
}

void Repeats::Forget() {
  known_.clear();
  running_.ops.clear();
  last_.ops.clear();
  is_long_ = true;  // what runs has begun before
}

}  // namespace shim::arena
