#include "shim/iterations/period.h"

namespace shim::iterations {

PeriodFinder::PeriodFinder() : last_(std::make_unique<uint32_t[]>(kTableSize)) {}

void PeriodFinder::Advance(const History& history) {
  const uint64_t position = history.size() - 1;
  // The last four operations, 16 bits of each: cheap to roll, and equality is checked afterwards.
  gram_ = gram_ << 16 | (history.identity(position) & 0xffff);
  uint32_t* const entry = &last_[(gram_ * 0x9e3779b97f4a7c15) >> 50];
  const uint32_t last = *entry;
  *entry = static_cast<uint32_t>(position + 1);
  if (period_ != 0) {
    if (history.identity(position) == history.identity(position - period_)) {
      ++run_;
      return;
    }
    period_ = 0;
    run_ = 0;
  }
  if (last == 0) return;
  const uint32_t back = static_cast<uint32_t>(position + 1) - last;  // modulo 2^32, as stored
  if (back <= kPeriodMax && back + kGram <= position) Propose(history, back);
}

void PeriodFinder::Propose(const History& history, uint64_t period) {
  const uint64_t run = history.EqualBefore(history.size(), period, 4 * kPeriodMax);
  if (run < kGram) return;
  period_ = period;
  run_ = run;
}

}  // namespace shim::iterations
