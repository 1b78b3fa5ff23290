// The daemon's journal as pieces of time: who held which lane, iterated, waited or was swapped
// when. What `laneway trace` and `laneway report` draw.
//
// The journal forgets what is old, so a piece may lack its begin or its end; it then reaches to the
// timeline's. Pieces of one session and activity never overlap. Pure. Thread safety: stateless.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cli {

// As in daemon/control/journal.h; `kind` is NameOf(EventKind).
struct JournalEvent {
  std::string kind;
  int64_t at_us = 0;
  uint64_t session = 0;
  uint64_t job = 0;
  uint64_t lane = 0;
  uint64_t other = 0;
  uint64_t count = 0;
  uint64_t bytes = 0;
  int64_t took_us = 0;
  std::string text;
};

// Appends the events of one answer of the daemon; the number of the last one, or `after` when there
// are none. InvalidArgument is told by -1: no such answer.
int64_t TakeEvents(const std::string& journal_json, uint64_t after,
                   std::vector<JournalEvent>* events);

enum class Activity { kHolds, kIterates, kWaits, kSwaps };

struct Piece {
  Activity activity = Activity::kHolds;
  uint64_t session = 0;
  uint64_t job = 0;
  uint64_t lane = 0;  // of kHolds
  int64_t begin_us = 0;
  int64_t end_us = 0;
  uint64_t count = 0;  // of kIterates
  uint64_t bytes = 0;
  std::string text;
};

// Something that happened at one time: fault, policy, pause, resume, evict, move, revoke.
struct Mark {
  std::string kind;
  int64_t at_us = 0;
  uint64_t session = 0;
  uint64_t job = 0;
  std::string text;
};

struct LaneSize {
  uint64_t lane = 0;
  int64_t at_us = 0;
  uint64_t bytes = 0;
};

struct SessionSpan {
  uint64_t job = 0;
  std::string program;
  int64_t begin_us = 0;
  int64_t end_us = 0;
};

struct JobTimeline {
  int64_t begin_us = 0;
  int64_t end_us = 0;
  std::map<uint64_t, SessionSpan> sessions;
  std::vector<Piece> pieces;  // by session and activity, then by begin
  std::vector<Mark> marks;
  std::vector<LaneSize> lane_sizes;
};

// `job`: only what concerns this one; 0: all.
JobTimeline BuildTimeline(std::vector<JournalEvent> events, uint64_t job);

}  // namespace cli
