#include "serve/front/recent_rate.h"

#include <iterator>

namespace serve::front {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kRecentUs = 10 * kSecondUs;

}  // namespace

void RecentRate::Note(int64_t now_us, int64_t total) {
  if (!noted_.empty() && now_us - noted_.back().first < kSecondUs) return;
  noted_.emplace_back(now_us, total);
  while (noted_.size() > 1 && now_us - noted_[1].first >= kRecentUs) noted_.pop_front();
}

// Of the last note before ten seconds ago, since the notes of an idle server are old.
double RecentRate::PerSecond(int64_t now_us, int64_t total) const {
  for (auto note = noted_.rbegin(); note != noted_.rend(); ++note) {
    const bool old_enough = now_us - note->first >= kRecentUs || std::next(note) == noted_.rend();
    if (!old_enough) continue;
    const int64_t time_us = now_us - note->first;
    return time_us <= 0
               ? 0
               : static_cast<double>(total - note->second) * 1e6 / static_cast<double>(time_us);
  }
  return 0;
}

}  // namespace serve::front
