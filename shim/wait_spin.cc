#include "shim/wait_spin.h"

#include <algorithm>

namespace shim {
namespace {

void AddToMean(int64_t took_us, int64_t share, int64_t* mean_us) {
  *mean_us = *mean_us == 0 ? took_us : *mean_us + (took_us - *mean_us) / share;
}

}  // namespace

void WaitSpin::OnEnd(const Wait& wait) {
  if (wait.took_us <= int64_t{ipc::limits::kSpinUs}) return;
  if (spins_long_ && wait.disturbed) return Pause();
  AddToMean(std::min(wait.took_us, kTookUsMax), kShare,
            spins_long_ ? &spinning_us_ : &sleeping_us_);
  if (--waits_left_ == 0) Turn();
}

void WaitSpin::Turn() {
  if (spins_long_) pause_ /= 2;
  in_trial_ = !in_trial_;
  waits_left_ = in_trial_ ? kTrialWaits : kTrialEvery;
  const bool is_better = spinning_us_ != 0 && spinning_us_ < sleeping_us_;
  // A wait that takes longer is not worth a processor, not even in a trial.
  const bool is_worth_it = sleeping_us_ <= int64_t{kLongSpinUs};
  spins_long_ = is_worth_it && is_better != in_trial_;
}

void WaitSpin::Pause() {
  spinning_us_ = 0;  // what is measured next counts
  spins_long_ = false;
  in_trial_ = false;
  pause_ = std::clamp(pause_ * 2, kPauseMin, kPauseMax);
  waits_left_ = pause_;
}

}  // namespace shim
