// How fast a total that only grows has grown lately, for people who watch.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

namespace serve::front {

// How fast a total has grown over the last ten seconds. Thread safety: none.
class RecentRate {
 public:
  // REQUIRES, of both: neither number falls.
  void Note(int64_t now_us, int64_t total);
  double PerSecond(int64_t now_us, int64_t total) const;

 private:
  std::deque<std::pair<int64_t, int64_t>> noted_;  // at most one a second
};

}  // namespace serve::front
