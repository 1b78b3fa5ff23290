#include "daemon/control/only_session.h"

#include <utility>

namespace control {

LanePlace PlaceOfOnly(const std::map<uint64_t, Session>& sessions) {
  if (sessions.size() != 1) return {};
  const Session& only = sessions.begin()->second;
  if (!RunsInWorker(only) || only.lane == 0) return {};
  return {only.worker, only.lane};
}

std::vector<OnlySession::Notice> OnlySession::Change(const LanePlace& now) {
  std::vector<Notice> notices;
  if (now == told_) return notices;
  const LanePlace before = std::exchange(told_, now);
  if (before.lane != 0) notices.push_back({before, false});
  if (now.lane != 0) notices.push_back({now, true});
  return notices;
}

}  // namespace control
