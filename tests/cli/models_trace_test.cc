// What fronts tell becomes tracks whose slices nest, in the window that is asked for.
#include "cli/models_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "cli/trace_json.h"
#include "tests/harness/seed.h"

namespace cli {
namespace {

using Json = nlohmann::json;
using serve::history::Outcome;
using serve::history::PauseRecord;
using serve::history::RequestRecord;
using serve::history::StepRecord;
using serve::history::ToldHistory;

struct Slice {
  std::string name;
  int64_t begin_us = 0;
  int64_t end_us = 0;
  Json args;
};
struct Track {
  std::vector<Slice> slices;
  std::map<std::string, std::vector<int64_t>> instants;
};
// By process and thread, as they are named.
using Tracks = std::map<std::string, Track>;

// Expects what the trace format asks for: names, times, slices that nest.
Tracks TracksOf(const std::string& events) {
  const Json json = Json::parse("[" + events + "]");
  std::map<int64_t, std::string> processes;
  std::map<std::pair<int64_t, int64_t>, std::string> threads;
  std::map<std::pair<int64_t, int64_t>, std::vector<Slice>> open;
  Tracks tracks;
  for (const Json& event : json) {
    const int64_t process = event.at("pid");
    if (event["ph"] == "M") {
      const std::string name = event.at("args").at("name");
      if (event["name"] == "process_name") {
        EXPECT_TRUE(processes.emplace(process, name).second);
      } else {
        EXPECT_TRUE(threads.emplace(std::pair(process, event.at("tid")), name).second);
        tracks[name];
      }
      continue;
    }
    const int64_t begin_us = event.at("ts");
    EXPECT_GE(begin_us, 0);
    if (event["ph"] == "C") {
      tracks[event.at("name")].slices.push_back({"", begin_us, begin_us, event["args"]["value"]});
      continue;
    }
    const std::pair<int64_t, int64_t> thread(process, event.at("tid"));
    EXPECT_TRUE(threads.contains(thread) && processes.contains(process)) << event;
    Track& track = tracks[threads[thread]];
    if (event["ph"] == "i") {
      track.instants[event.at("name")].push_back(begin_us);
      continue;
    }
    EXPECT_EQ(event["ph"], "X");
    const Slice slice = {event.at("name"), begin_us, begin_us + event.at("dur").get<int64_t>(),
                         event.at("args")};
    EXPECT_GE(slice.end_us, slice.begin_us);
    std::vector<Slice>& parents = open[thread];
    while (!parents.empty() && parents.back().end_us <= slice.begin_us) parents.pop_back();
    EXPECT_TRUE(parents.empty() || slice.end_us <= parents.back().end_us)
        << slice.name << " ends after " << (parents.empty() ? "" : parents.back().name);
    EXPECT_TRUE(track.slices.empty() || track.slices.back().begin_us <= slice.begin_us) << event;
    parents.push_back(slice);
    track.slices.push_back(slice);
  }
  return tracks;
}

std::vector<std::string> NamesOf(const Track& track) {
  std::vector<std::string> names;
  for (const Slice& slice : track.slices) names.push_back(slice.name);
  return names;
}

RequestRecord Answered() {
  RequestRecord request = {1, "cmpl-1", 1, 1, 40, 16, 9, 1100, 1110, 1150, 1400};
  request.outcome = Outcome::kLength;
  request.preemptions = 1;
  request.recomputations = 1;
  request.pauses = {{1120, 1130, true, PauseRecord::kAllAnswers}, {1200, 1220, false, 0}};
  return request;
}

ToldHistory Small() {
  ToldHistory told = {7, 3, "http://127.0.0.1:8000/v1", 1, "small", 2000, {}};
  told.records.steps = {{1, 1110, 1150, 35, 24, 0, 1, 3, 0, false},
                        {2, 1150, 1160, 9, 0, 1, 1, 3, 2, false}};
  told.records.loads = {{1050, 0, 1, 0}, {1110, 1, 0, 3}, {1400, 0, 0, 0}};
  told.records.requests = {Answered()};
  told.records.engines = {{1000, 1020, 1120, 64, "it was killed"}, {1121, 1125, 0, 64, ""}};
  return told;
}

Tracks Drawn(const ToldHistory& told) {
  const TraceSpan window = WindowOf({told});
  return TracksOf(ModelsTraceJson({told}, window, window.begin_us));
}

TEST(ModelsTraceTest, ARequestHasItsPhasesAndPauses) {
  const Tracks tracks = Drawn(Small());
  const Track& request = tracks.at("request cmpl-1");
  EXPECT_EQ(NamesOf(request),
            (std::vector<std::string>{"cmpl-1", "queued", "prefill", "waits: engine lost",
                                      "decoding", "waits: preempted"}));
  const std::vector<Slice>& slices = request.slices;
  EXPECT_EQ(slices[0].begin_us, 100);
  EXPECT_EQ(slices[0].end_us, 400);
  EXPECT_EQ(slices[0].args["outcome"], "length");
  EXPECT_EQ(slices[0].args["cached_tokens"], 16);
  EXPECT_EQ(slices[0].args["preemptions"], 1);
  EXPECT_EQ(slices[0].args["recomputations"], 1);
  EXPECT_EQ(slices[1].end_us, 110);
  EXPECT_EQ(slices[2].end_us, 150);
  EXPECT_EQ(slices[3].begin_us, 120);
  EXPECT_EQ(slices[3].end_us, 130);
  EXPECT_EQ(slices[4].end_us, 400);
  EXPECT_EQ(request.instants.at("engine lost"), std::vector<int64_t>{120});
  EXPECT_EQ(request.instants.at("preempted"), std::vector<int64_t>{200});
}

TEST(ModelsTraceTest, StepsEnginesAndTheLoadHaveTracks) {
  const Tracks tracks = Drawn(Small());
  const Track& steps = tracks.at("steps");
  ASSERT_EQ(steps.slices.size(), 2u);
  EXPECT_EQ(steps.slices[0].begin_us, 110);
  EXPECT_EQ(steps.slices[0].end_us, 150);
  EXPECT_EQ(steps.slices[0].args["prompt_tokens"], 24);
  EXPECT_EQ(steps.slices[1].args["number"], 2);
  EXPECT_EQ(NamesOf(tracks.at("engine")),
            (std::vector<std::string>{"loads", "ready", "loads", "ready"}));
  EXPECT_EQ(tracks.at("engine").slices.back().end_us, 1000) << "when the front answered";
  EXPECT_EQ(tracks.at("engine").instants.at("lost: it was killed"), std::vector<int64_t>{120});
  EXPECT_EQ(tracks.at("running").slices[1].args, 1);
  EXPECT_EQ(tracks.at("waiting").slices[0].args, 1);
  EXPECT_EQ(tracks.at("KV blocks used").slices[1].args, 3);
}

TEST(ModelsTraceTest, WhatGoesOnLastsUntilTheFrontAnswered) {
  ToldHistory told = Small();
  RequestRecord* const request = &told.records.requests[0];
  request->ended_us = request->first_token_us = 0;
  request->outcome = Outcome::kOpen;
  request->pauses = {{1200, 0, false, 0}};
  told.records.steps[1].end_us = 0;
  const Tracks tracks = Drawn(told);
  const Track& track = tracks.at("request cmpl-1");
  EXPECT_EQ(NamesOf(track),
            (std::vector<std::string>{"cmpl-1", "queued", "prefill", "waits: preempted"}));
  for (const size_t at : {0, 2, 3}) EXPECT_EQ(track.slices[at].end_us, 1000);
  EXPECT_EQ(tracks.at("steps").slices[1].end_us, 1000);
  request->begun_us = 0;
  EXPECT_EQ(NamesOf(Drawn(told).at("request cmpl-1")),
            (std::vector<std::string>{"cmpl-1", "queued"}));
}

TEST(ModelsTraceTest, StepsInFlightAtOneTimeHaveThreads) {
  ToldHistory told = Small();
  told.records.steps = {{1, 1100, 1130, 0, 1, 0, 1, 1, 0, false},
                        {2, 1110, 1140, 0, 1, 0, 1, 1, 0, false},
                        {3, 1130, 1150, 0, 1, 0, 1, 1, 0, false}};
  const Tracks tracks = Drawn(told);
  EXPECT_EQ(tracks.at("steps").slices.size(), 2u);
  EXPECT_EQ(tracks.at("steps, 2 in flight").slices.size(), 1u);
  told.records.steps.assign(100, {1, 1100, 1130, 0, 1, 0, 1, 1, 0, false});
  EXPECT_TRUE(Drawn(told).contains("steps, 16 in flight"));
  EXPECT_FALSE(Drawn(told).contains("steps, 17 in flight"));
}

TEST(ModelsTraceTest, RefusedRequestsAreMarks) {
  ToldHistory told = Small();
  RequestRecord request;
  request.id = "cmpl-2";
  request.arrived_us = request.ended_us = 1300;
  request.outcome = Outcome::kRefusedQueueFull;
  told.records.refused = {request};
  EXPECT_EQ(Drawn(told).at("refused").instants.at("cmpl-2 refused: the queue is full"),
            std::vector<int64_t>{300});
}

TEST(ModelsTraceTest, AWindowHasWhatLiesInIt) {
  const Tracks tracks = TracksOf(ModelsTraceJson({Small()}, {1155, 1210}, 1150));
  const Track& request = tracks.at("request cmpl-1");
  EXPECT_EQ(NamesOf(request), (std::vector<std::string>{"cmpl-1", "decoding", "waits: preempted"}));
  for (const Slice& slice : request.slices) {
    EXPECT_GE(slice.begin_us, 5);
    EXPECT_LE(slice.end_us, 60);
  }
  EXPECT_FALSE(request.instants.contains("engine lost"));
  ASSERT_EQ(tracks.at("steps").slices.size(), 1u);
  EXPECT_EQ(tracks.at("steps").slices[0].args["number"], 2);
  ASSERT_EQ(tracks.at("running").slices.size(), 1u);
  EXPECT_EQ(tracks.at("running").slices[0].begin_us, 5) << "what was so before";
  EXPECT_EQ(tracks.at("running").slices[0].args, 1);
  const Tracks later = TracksOf(ModelsTraceJson({Small()}, {1500, 1600}, 1500));
  EXPECT_FALSE(later.contains("request cmpl-1"));
  EXPECT_FALSE(later.contains("steps"));
}

TEST(ModelsTraceTest, ModelsAreProcessesBesideJobs) {
  ToldHistory other = Small();
  other.model = "lar\"ge\n";
  const TraceSpan window = WindowOf({Small(), other});
  const std::string models = ModelsTraceJson({Small(), other}, window, window.begin_us);
  JobTimeline timeline;
  timeline.begin_us = window.begin_us;
  timeline.sessions[1] = {3, "serve", 0, 0};
  const Json trace = Json::parse(TraceJson(timeline, models));
  std::map<int64_t, std::string> processes;
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
  }
  EXPECT_EQ(processes.size(), 3u);
  EXPECT_EQ(processes.at(3), "job 3: serve");
  EXPECT_EQ(processes.rbegin()->second, "model lar\"ge\n (job 3, http://127.0.0.1:8000/v1)");
}

// Whatever passes the door: times in an order that no front would tell.
TEST(ModelsTraceTest, AnyHistoryThatIsReadIsDrawn) {
  std::mt19937_64 random(harness::Seed());
  const auto time = [&random] {
    return static_cast<int64_t>(random() % 8 == 0 ? 0 : random() % 99);
  };
  for (int round = 0; round < 500; ++round) {
    ToldHistory told = {1, 1, "", 1, "m", 99, {}};
    for (int i = 0; i < 12; ++i) {
      StepRecord step;
      step.begin_us = time();
      step.end_us = time();
      told.records.steps.push_back(step);
      told.records.loads.push_back({time(), 1, 2, 3});
      RequestRecord request;
      request.id = std::to_string(i);
      request.arrived_us = time();
      request.begun_us = time();
      request.first_token_us = time();
      request.ended_us = time();
      for (int pause = 0; pause < 4; ++pause)
        request.pauses.push_back({time(), time(), random() % 2 == 0, pause - 1});
      told.records.requests.push_back(request);
      told.records.engines.push_back({time(), time(), time(), 1, ""});
    }
    const std::string text = Encode(told);
    ToldHistory read;
    const auto is_wrong = [](int64_t begin_us, int64_t end_us) {
      return end_us != 0 && end_us < begin_us;
    };
    Json json = Json::parse(text);
    // Leaves out what the door would refuse, so that the rest passes.
    for (const char* const list : {"steps", "requests", "engines"}) {
      Json kept = Json::array();
      for (const Json& each : json[list]) {
        Json alone = json;
        for (const char* const other : {"steps", "requests", "engines"})
          alone[other] = Json::array();
        alone[list].push_back(each);
        if (DecodeUntrusted(alone.dump(), &read)) kept.push_back(each);
      }
      json[list] = kept;
    }
    ASSERT_TRUE(DecodeUntrusted(json.dump(), &read));
    for (const StepRecord& step : read.records.steps)
      EXPECT_FALSE(is_wrong(step.begin_us, step.end_us));
    const TraceSpan whole = WindowOf({read});
    (void)TracksOf(ModelsTraceJson({read}, whole, whole.begin_us));
    (void)TracksOf(ModelsTraceJson({read}, {20, 60}, 20));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace cli
