// Finds the period that explains the recent operations: the last time that the last few happened
// proposes one, and it stays for as long as every further operation equals the one a period before.
//
// O(1) per operation, O(log) when the proposal changes. Thread safety: none; std only, no clock.
#pragma once

#include <cstdint>
#include <memory>

#include "shim/iterations/history.h"

namespace shim::iterations {

class PeriodFinder {
 public:
  static constexpr uint64_t kPeriodMax = History::kSize / 8;

  PeriodFinder();

  // After history.Push().
  void Advance(const History& history);

  // 0: none.
  uint64_t period() const { return period_; }
  // How many of the last operations equal those a period before.
  uint64_t run() const { return run_; }
  // Equal rounds seen, the first one included.
  uint64_t rounds() const { return period_ == 0 ? 0 : run_ / period_ + 1; }
  // Where the first round begins.
  uint64_t begin(const History& history) const { return history.size() - run_ - period_; }

 private:
  static constexpr uint64_t kGram = 4;  // operations that propose
  static constexpr uint32_t kTableSize = 1u << 14;

  void Propose(const History& history, uint64_t period);

  std::unique_ptr<uint32_t[]> last_;  // by hash of kGram operations: low bits of position + 1
  uint64_t gram_ = 0;
  uint64_t period_ = 0;
  uint64_t run_ = 0;
};

}  // namespace shim::iterations
