#include "daemon/control/alone.h"

#include <utility>

namespace control {

LanePlace PlaceOfOnly(const std::map<uint64_t, Session>& sessions) {
  if (sessions.size() != 1) return {};
  const Session& only = sessions.begin()->second;
  if (!RunsInWorker(only) || only.lane == 0) return {};
  return {only.worker, only.lane};
}

std::vector<Alone::Word> Alone::Change(const LanePlace& now) {
  std::vector<Word> words;
  if (now == told_) return words;
  const LanePlace before = std::exchange(told_, now);
  if (before.lane != 0) words.push_back({before, false});
  if (now.lane != 0) words.push_back({now, true});
  return words;
}

}  // namespace control
