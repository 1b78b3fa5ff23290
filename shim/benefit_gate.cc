#include "shim/benefit_gate.h"

#include <algorithm>
#include <cstddef>

namespace shim {
namespace {

template <class T>
T MedianOf(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

bool BenefitGate::OnIteration(const Iteration& iteration) {
  if (state_ == State::kComparing) {
    if (replays_) repeated_ += iteration.repeated;
    if (left_ != kBlock) times_ns_.push_back(std::max<int64_t>(iteration.took_ns, 1));
  }
  if (--left_ != 0) return replays_;
  if (state_ == State::kComparing) {
    EndBlock();
  } else {
    BeginComparing();
  }
  return replays_;
}

void BenefitGate::OnNewBody() {
  if (ratio_ != 0 || new_bodies_ == kNewBodiesMax) return;
  ++new_bodies_;
  state_ = State::kLearning;
  replays_ = true;
  left_ = kLearn;
  rest_ = 0;
}

void BenefitGate::TakeVerdict(bool replays, double ratio) {
  replays_ = replays;
  ratio_ = ratio;
  state_ = replays ? State::kReplaying : State::kForwarding;
  rest_ = left_ = kFirstRest;
}

void BenefitGate::BeginComparing() {
  was_replaying_ = state_ == State::kReplaying;
  state_ = State::kComparing;
  replays_ = false;
  left_ = kBlock;
  repeated_ = 0;
  times_ns_.clear();
  forwarded_.clear();
  replayed_.clear();
}

void BenefitGate::EndBlock() {
  (replays_ ? replayed_ : forwarded_).push_back(MedianOf(times_ns_));
  times_ns_.clear();
  left_ = kBlock;
  if (replays_ && replayed_.size() == kPairs) return Decide();
  replays_ = !replays_;
}

void BenefitGate::Decide() {
  std::vector<double> ratios;
  for (uint32_t i = 0; i < kPairs; ++i)
    ratios.push_back(static_cast<double>(replayed_[i]) / static_cast<double>(forwarded_[i]));
  ratio_ = repeated_ == 0 ? 0 : MedianOf(ratios);
  replays_ = repeated_ != 0 && ratio_ <= (was_replaying_ ? kLeave : kEnter);
  state_ = replays_ ? State::kReplaying : State::kForwarding;
  // Where nothing was repeated, iterations may have been taken for shorter ones than they are.
  const uint32_t first = repeated_ == 0 ? kShortRest : kFirstRest;
  const bool as_before = replays_ == was_replaying_ && rest_ >= first;
  rest_ = as_before ? std::min(rest_ * 2, kLongestRest) : first;
  left_ = rest_;
}

}  // namespace shim
