// Finds the period that explains the recent operations. The previous occurrence of the last few
// operations proposes a period. The proposal stays while each further operation equals the
// operation a period before, or until another proposal explains more operations.
//
// A few operations propose the nearest repetition, which may be shorter than the period: the same
// step may stand inside two different iterations. Sixteen or sixty-four operations propose the
// whole period.
//
// O(1) per operation, O(log) when a proposal is new. Thread safety: none; std only, no clock.
#pragma once

#include <cstdint>
#include <memory>

#include "shim/iterations/history.h"

namespace shim::iterations {

class PeriodFinder {
 public:
  static constexpr uint64_t kPeriodMax = History::kSize / 8;

  PeriodFinder();

  // After history.Push(). `thorough`: with the longer proposals, too.
  void Advance(const History& history, bool thorough) {
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

  // 0: none.
  uint64_t period() const { return period_; }
  // How many of the last operations equal those a period before.
  uint64_t run() const { return run_; }
  // Equal rounds seen, the first one included.
  uint64_t rounds() const { return period_ == 0 ? 0 : run_ / period_ + 1; }
  bool repeats() const { return period_ != 0 && run_ >= period_; }  // rounds() >= 2
  // Where the first round begins.
  uint64_t begin(const History& history) const { return history.size() - run_ - period_; }

 private:
  static constexpr uint64_t kGram = 4;  // operations that propose
  static constexpr int kTableBits = 14;
  static constexpr uint64_t kLongGrams[] = {16, 64};

  using Table = std::unique_ptr<uint32_t[]>;  // by hash: low bits of the last position + 1

  struct LongGram {
    Table last;
    uint64_t rejected = 0;  // the last period that it proposed in vain
  };

  // The period that a gram proposes, which ends at the last operation; 0: none.
  static uint64_t Look(Table& table, uint64_t hash, uint64_t position) {
    uint32_t* const entry = &table[(hash * 0x9e3779b97f4a7c15) >> (64 - kTableBits)];
    const uint32_t last = *entry;
    *entry = static_cast<uint32_t>(position + 1);
    if (last == 0) return 0;
    const uint32_t back = static_cast<uint32_t>(position + 1) - last;  // modulo 2^32, as stored
    return back <= kPeriodMax ? back : 0;
  }
  bool Propose(const History& history, uint64_t period, uint64_t gram);
  void ProposeLong(const History& history);

  Table last_;
  LongGram long_[2];
  uint64_t gram_ = 0;
  uint64_t period_ = 0;
  uint64_t run_ = 0;
};

}  // namespace shim::iterations
