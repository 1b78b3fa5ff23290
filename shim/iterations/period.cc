#include "shim/iterations/period.h"

namespace shim::iterations {

PeriodFinder::PeriodFinder() : last_(std::make_unique<uint32_t[]>(1u << kTableBits)) {
  for (LongGram& gram : long_) gram.last = std::make_unique<uint32_t[]>(1u << kTableBits);
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
