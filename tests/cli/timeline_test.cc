#include "cli/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "cli/trace_json.h"

namespace cli {
namespace {

using Json = nlohmann::json;

std::vector<Piece> Of(const JobTimeline& timeline, uint64_t session, Activity activity) {
  std::vector<Piece> pieces;
  for (const Piece& piece : timeline.pieces) {
    if (piece.session == session && piece.activity == activity) pieces.push_back(piece);
  }
  return pieces;
}

// What any timeline keeps to, whatever the journal says.
void ExpectSound(const JobTimeline& timeline) {
  std::map<std::pair<uint64_t, Activity>, int64_t> ended;
  for (const Piece& piece : timeline.pieces) {
    int64_t& last =
        ended.try_emplace({piece.session, piece.activity}, timeline.begin_us).first->second;
    ASSERT_LE(piece.begin_us, piece.end_us);
    ASSERT_GE(piece.begin_us, last);
    ASSERT_GE(piece.begin_us, timeline.begin_us);
    ASSERT_LE(piece.end_us, timeline.end_us);
    last = piece.end_us;
  }
}

const std::vector<JournalEvent>& TwoJobs() {
  static const std::vector<JournalEvent>* const events = new std::vector<JournalEvent>{
      {.kind = "begin", .at_us = 1000, .session = 1, .job = 7, .text = "train"},
      {.kind = "begin", .at_us = 1100, .session = 2, .job = 8, .text = "infer"},
      {.kind = "lane", .at_us = 1150, .session = 1, .job = 7, .lane = 3, .bytes = 4096},
      {.kind = "grant", .at_us = 1200, .session = 1, .job = 7, .lane = 3},
      {.kind = "wait", .at_us = 1300, .session = 2, .job = 8, .text = "its turn"},
      {.kind = "iterations", .at_us = 1900, .session = 1, .job = 7, .count = 1, .took_us = 600},
      {.kind = "switch", .at_us = 2000, .session = 1, .job = 7, .lane = 3, .other = 2},
      {.kind = "go", .at_us = 2000, .session = 2, .job = 8, .took_us = 700},
      {.kind = "policy", .at_us = 2100, .text = "fair"},
      {.kind = "swap-out", .at_us = 2500, .session = 1, .job = 7, .bytes = 64, .took_us = 300},
      {.kind = "fault", .at_us = 2600, .session = 2, .job = 8, .text = "illegal address"},
      {.kind = "end", .at_us = 2700, .session = 2, .job = 8},
  };
  return *events;
}

TEST(TimelineTest, PiecesBeginAndEndWithTheirEvents) {
  const JobTimeline timeline = BuildTimeline(TwoJobs(), 0);
  ExpectSound(timeline);
  EXPECT_EQ(timeline.begin_us, 1000);
  EXPECT_EQ(timeline.end_us, 2700);
  EXPECT_EQ(timeline.sessions.at(1).program, "train");
  const std::vector<Piece> first = Of(timeline, 1, Activity::kHolds);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].begin_us, 1200);
  EXPECT_EQ(first[0].end_us, 2000);
  const std::vector<Piece> second = Of(timeline, 2, Activity::kHolds);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].end_us, 2700);
  EXPECT_EQ(second[0].job, 8u);
  const std::vector<Piece> waits = Of(timeline, 2, Activity::kWaits);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].end_us - waits[0].begin_us, 700);
  EXPECT_EQ(waits[0].text, "its turn");
  EXPECT_EQ(Of(timeline, 1, Activity::kSwaps).size(), 1u);
  EXPECT_EQ(timeline.marks.size(), 2u);
}

TEST(TimelineTest, OneJobAlone) {
  const JobTimeline timeline = BuildTimeline(TwoJobs(), 8);
  EXPECT_EQ(timeline.sessions.size(), 1u);
  for (const Piece& piece : timeline.pieces) EXPECT_EQ(piece.job, 8u);
  EXPECT_TRUE(BuildTimeline(TwoJobs(), 99).sessions.empty());
}

TEST(TimelineTest, WhatBeganBeforeTheJournalIsThere) {
  std::vector<JournalEvent> events(TwoJobs().begin() + 6, TwoJobs().end());
  const JobTimeline timeline = BuildTimeline(events, 0);
  ExpectSound(timeline);
  EXPECT_EQ(timeline.sessions.size(), 2u);
  ASSERT_EQ(Of(timeline, 2, Activity::kWaits).size(), 1u);
}

TEST(TimelineTest, AnyOrderOfEventsIsSound) {
  const uint64_t seed = 42;
  std::mt19937_64 random(seed);
  const char* const kinds[] = {"begin", "end",      "grant",   "switch", "iterations", "wait",
                               "go",    "swap-out", "swap-in", "lane",   "pause",      "nonsense"};
  for (int round = 0; round < 300; ++round) {
    std::vector<JournalEvent> events;
    for (int i = 0; i < 100; ++i) {
      events.push_back({.kind = kinds[random() % std::size(kinds)],
                        .at_us = static_cast<int64_t>(random() % 10'000),
                        .session = random() % 4,
                        .job = random() % 3,
                        .lane = random() % 3,
                        .other = random() % 4,
                        .count = random() % 5,
                        .took_us = static_cast<int64_t>(random() % 5'000)});
    }
    const JobTimeline timeline = BuildTimeline(events, 0);
    ExpectSound(timeline);
    ASSERT_TRUE(Json::parse(TraceJson(timeline)).is_object()) << "seed " << seed;
  }
}

TEST(TraceJsonTest, HasNamesSlicesCountersAndMarksInOrder) {
  const Json trace = Json::parse(TraceJson(BuildTimeline(TwoJobs(), 0)));
  int64_t last = 0;
  std::map<std::string, int> phases;
  for (const Json& event : trace["traceEvents"]) {
    ++phases[event["ph"].get<std::string>()];
    if (event["ph"] == "M") continue;
    EXPECT_GE(event["ts"].get<int64_t>(), last);
    last = event["ts"].get<int64_t>();
  }
  EXPECT_EQ(phases["C"], 1);
  EXPECT_EQ(phases["i"], 2);
  EXPECT_EQ(phases["X"], 2 * 2 + 1 + 1 + 1);  // two holds, each in its job and in its lane
  EXPECT_EQ(phases["M"], 2 * (1 + 4) + 1 + 1);
}

TEST(TraceJsonTest, AnEmptyJournalIsAnEmptyTrace) {
  EXPECT_TRUE(Json::parse(TraceJson(BuildTimeline({}, 0)))["traceEvents"].empty());
}

TEST(TakeEventsTest, ReadsWhatTheDaemonSays) {
  std::vector<JournalEvent> events;
  EXPECT_EQ(TakeEvents(R"({"ok":true,"last":9,"lost":0,"events":[{"number":8,"at_us":5,
      "kind":"grant","session":2,"lane":1}]})",
                       0, &events),
            8);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].lane, 1u);
  EXPECT_EQ(TakeEvents(R"({"events":[]})", 8, &events), 8);
  EXPECT_EQ(TakeEvents("nonsense", 8, &events), -1);
}

}  // namespace
}  // namespace cli
