#include "daemon/control/journal.h"

#include <algorithm>
#include <cassert>

namespace control {

const char* NameOf(EventKind kind) {
  switch (kind) {
    case EventKind::kSessionBegin:
      return "begin";
    case EventKind::kSessionEnd:
      return "end";
    case EventKind::kGrant:
      return "grant";
    case EventKind::kRevoke:
      return "revoke";
    case EventKind::kSwitch:
      return "switch";
    case EventKind::kIterations:
      return "iterations";
    case EventKind::kWaitBegin:
      return "wait";
    case EventKind::kWaitEnd:
      return "go";
    case EventKind::kSwapOut:
      return "swap-out";
    case EventKind::kSwapIn:
      return "swap-in";
    case EventKind::kLane:
      return "lane";
    case EventKind::kPause:
      return "pause";
    case EventKind::kResume:
      return "resume";
    case EventKind::kMove:
      return "move";
    case EventKind::kEvict:
      return "evict";
    case EventKind::kFault:
      return "fault";
    case EventKind::kPolicy:
      return "policy";
    case EventKind::kLimit:
      return "limit";
    case EventKind::kTerms:
      return "terms";
  }
  return "?";
}

Journal::Journal(size_t events_max) : ring_(events_max) { assert(events_max > 0); }

void Journal::Add(Event event, std::string_view text) {
  const size_t length = std::min(text.size(), kEventTextBytes - 1);
  std::copy_n(text.begin(), length, event.text);
  event.text[length] = '\0';
  event.number = ++added_;
  ring_[(event.number - 1) % ring_.size()] = event;
}

std::vector<Event> Journal::After(uint64_t after, size_t max) const {
  std::vector<Event> events;
  uint64_t number = std::max(after, lost());
  for (; number < added_ && events.size() < max; ++number) {
    events.push_back(ring_[number % ring_.size()]);
  }
  return events;
}

}  // namespace control
