#include "cli/timeline.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/find.h"

namespace cli {
namespace {

using Json = nlohmann::json;
using Key = std::pair<uint64_t, Activity>;  // a session's track

class Builder {
 public:
  explicit Builder(JobTimeline* timeline) : timeline_(timeline) {}

  void Take(const JournalEvent& event) {
    if (event.session != 0) Know(event);
    if (event.kind == "begin") {
      timeline_->sessions[event.session].program = event.text;
    } else if (event.kind == "end") {
      End(event);
    } else if (event.kind == "grant") {
      Hold(event.session, event.job, event.lane, event.at_us);
    } else if (event.kind == "switch") {
      Close({event.session, Activity::kHolds}, event.at_us);
      if (event.other != 0) Hold(event.other, JobOf(event.other), event.lane, event.at_us);
    } else if (event.kind == "wait") {
      Open(Activity::kWaits, event);
    } else if (event.kind == "go") {
      Go(event);
    } else if (event.kind == "iterations" || event.kind == "swap-out" || event.kind == "swap-in") {
      Whole(event);
    } else if (event.kind == "lane") {
      timeline_->lane_sizes.push_back({event.lane, event.at_us, event.bytes});
    } else {
      timeline_->marks.push_back({event.kind, event.at_us, event.session, event.job, event.text});
    }
  }

  void Finish() {
    while (!open_.empty()) Close(open_.begin()->first, timeline_->end_us);
    std::stable_sort(timeline_->pieces.begin(), timeline_->pieces.end(),
                     [](const Piece& a, const Piece& b) {
                       return std::tie(a.session, a.activity, a.begin_us) <
                              std::tie(b.session, b.activity, b.begin_us);
                     });
  }

 private:
  void Know(const JournalEvent& event) {
    const bool is_new = timeline_->sessions.count(event.session) == 0;
    SessionSpan& span = timeline_->sessions[event.session];
    if (event.job != 0) span.job = event.job;
    if (!is_new) return;
    // One that is known only by later events was there before the journal begins.
    span.begin_us = event.kind == "begin" ? event.at_us : timeline_->begin_us;
    span.end_us = timeline_->end_us;
  }

  uint64_t JobOf(uint64_t session) const {
    const SessionSpan* const span = base::FindOrNull(timeline_->sessions, session);
    return span == nullptr ? 0 : span->job;
  }

  void End(const JournalEvent& event) {
    timeline_->sessions[event.session].end_us = event.at_us;
    for (const Activity activity : {Activity::kHolds, Activity::kWaits}) {
      Close({event.session, activity}, event.at_us);
    }
  }

  void Hold(uint64_t session, uint64_t job, uint64_t lane, int64_t at_us) {
    // A lane has one holder: a switch may have made room in the journal.
    for (const std::pair<const Key, Piece>& entry : open_) {
      if (entry.second.activity != Activity::kHolds || entry.second.lane != lane) continue;
      Close(entry.first, at_us);
      break;
    }
    Close({session, Activity::kHolds}, at_us);
    Close({session, Activity::kWaits}, at_us);  // the daemon may have seen its end later
    open_[{session, Activity::kHolds}] = {.activity = Activity::kHolds,
                                          .session = session,
                                          .job = job,
                                          .lane = lane,
                                          .begin_us = at_us};
  }

  void Open(Activity activity, const JournalEvent& event) {
    Close({event.session, activity}, event.at_us);
    open_[{event.session, activity}] = {.activity = activity,
                                        .session = event.session,
                                        .job = event.job,
                                        .begin_us = event.at_us,
                                        .bytes = event.bytes,
                                        .text = event.text};
  }

  void Go(const JournalEvent& event) {
    const Key key{event.session, Activity::kWaits};
    const int64_t* const ended_us = base::FindOrNull(ended_, key);
    // A grant has ended it already.
    const bool told = ended_us != nullptr && *ended_us > event.at_us - event.took_us;
    if (open_.count(key) == 0) {
      if (told) return;
      // Its begin made room.
      Open(Activity::kWaits, event);
      open_[key].begin_us = event.at_us - event.took_us;
    }
    Close(key, event.at_us);
  }

  void Whole(const JournalEvent& event) {
    const bool iterates = event.kind == "iterations";
    Add({.activity = iterates ? Activity::kIterates : Activity::kSwaps,
         .session = event.session,
         .job = event.job,
         .begin_us = event.at_us - event.took_us,
         .end_us = event.at_us,
         .count = event.count,
         .bytes = event.bytes,
         .text = iterates ? "" : event.kind});
  }

  void Close(const Key& key, int64_t at_us) {
    const std::map<Key, Piece>::iterator found = open_.find(key);
    if (found == open_.end()) return;
    Piece piece = std::move(found->second);
    open_.erase(found);
    piece.end_us = at_us;
    Add(std::move(piece));
  }

  void Add(Piece piece) {
    int64_t& last =
        ended_.try_emplace({piece.session, piece.activity}, timeline_->begin_us).first->second;
    piece.begin_us = std::max(piece.begin_us, last);
    piece.end_us = std::max(piece.end_us, piece.begin_us);
    last = piece.end_us;
    timeline_->pieces.push_back(std::move(piece));
  }

  JobTimeline* const timeline_;
  std::map<Key, Piece> open_;
  std::map<Key, int64_t> ended_;
};

}  // namespace

int64_t TakeEvents(const std::string& journal_json, uint64_t after,
                   std::vector<JournalEvent>* events) {
  const Json answer = Json::parse(journal_json, nullptr, false);
  if (!answer.is_object() || !answer.contains("events") || !answer["events"].is_array()) return -1;
  uint64_t last = after;
  for (const Json& json : answer["events"]) {
    JournalEvent event;
    event.kind = json.value("kind", "");
    event.at_us = json.value("at_us", int64_t{0});
    event.session = json.value("session", uint64_t{0});
    event.job = json.value("job", uint64_t{0});
    event.lane = json.value("lane", uint64_t{0});
    event.other = json.value("other", uint64_t{0});
    event.count = json.value("count", uint64_t{0});
    event.bytes = json.value("bytes", uint64_t{0});
    event.took_us = json.value("took_us", int64_t{0});
    event.text = json.value("text", "");
    events->push_back(std::move(event));
    last = json.value("number", last);
  }
  return static_cast<int64_t>(last);
}

JobTimeline BuildTimeline(std::vector<JournalEvent> events, uint64_t job) {
  JobTimeline timeline;
  if (events.empty()) return timeline;
  std::stable_sort(events.begin(), events.end(),
                   [](const JournalEvent& a, const JournalEvent& b) { return a.at_us < b.at_us; });
  timeline.begin_us = events.front().at_us;
  for (const JournalEvent& event : events) {
    timeline.begin_us = std::min(timeline.begin_us, event.at_us - event.took_us);
  }
  timeline.end_us = events.back().at_us;
  Builder builder(&timeline);
  for (const JournalEvent& event : events) builder.Take(event);
  builder.Finish();
  if (job == 0) return timeline;
  const auto is_others = [job](const auto& thing) { return thing.job != job; };
  std::erase_if(timeline.pieces, is_others);
  std::erase_if(timeline.marks,
                [job](const Mark& mark) { return mark.job != job && mark.job != 0; });
  std::erase_if(timeline.sessions, [job](const auto& entry) { return entry.second.job != job; });
  return timeline;
}

}  // namespace cli
