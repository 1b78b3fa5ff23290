#include "shim/iterations/period.h"

namespace shim::iterations {

PeriodFinder::PeriodFinder() : last_(std::make_unique<uint32_t[]>(1u << kTableBits)) {
  for (LongGram& gram : long_) gram.last = std::make_unique<uint32_t[]>(1u << kTableBits);
}

uint64_t PeriodFinder::Look(Table& table, uint64_t hash, uint64_t position) {
  uint32_t* const entry = &table[(hash * 0x9e3779b97f4a7c15) >> (64 - kTableBits)];
  const uint32_t last = *entry;
  *entry = static_cast<uint32_t>(position + 1);
  if (last == 0) return 0;
  const uint32_t back = static_cast<uint32_t>(position + 1) - last;  // modulo 2^32, as stored
  return back <= kPeriodMax ? back : 0;
}

void PeriodFinder::Advance(const History& history, bool thorough) {
  const uint64_t position = history.size() - 1;
  // The last four operations, 16 bits of each: cheap to roll, and equality is checked afterwards.
  gram_ = gram_ << 16 | (history.identity(position) & 0xffff);
  const uint64_t proposed = Look(last_, gram_, position);
  if (period_ != 0) {
    if (history.identity(position) == history.identity(position - period_)) {
      ++run_;
    } else {
      period_ = 0;
      run_ = 0;
    }
  }
  if (period_ == 0 && proposed != 0) Propose(history, proposed, kGram);
  if (thorough) ProposeLong(history);
}

bool PeriodFinder::Propose(const History& history, uint64_t period, uint64_t gram) {
  if (period + gram > history.size()) return false;
  const uint64_t run = history.EqualBefore(history.size(), period, 4 * kPeriodMax);
  if (run < gram || run <= run_) return false;
  period_ = period;
  run_ = run;
  return true;
}

void PeriodFinder::ProposeLong(const History& history) {
  for (size_t i = 0; i < 2; ++i) {
    const uint64_t gram = kLongGrams[i];
    if (history.size() <= gram + 1) return;
    const uint64_t hash = history.Hash(history.size() - gram, gram);
    const uint64_t proposed = Look(long_[i].last, hash, history.size() - 1);
    if (proposed == 0 || proposed == period_ || proposed == long_[i].rejected) continue;
    long_[i].rejected = Propose(history, proposed, gram) ? 0 : proposed;
  }
}

}  // namespace shim::iterations
