#include "cli/call_events.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>

#include "absl/strings/escaping.h"
#include "cli/call_events_json.h"
#include "cli/trace_json.h"
#include "ipc/calls.h"
#include "ipc/calls/limits.h"
#include "tests/cli/graph/record_bytes.h"
#include "tests/harness/seed.h"

namespace cli {
namespace {

using Json = nlohmann::json;
using ipc::TraceEvent;
using ipc::TraceKind;

constexpr uint32_t kClient = ipc::kClientTracks;

TraceEvent Call(int64_t begin_ns, int64_t end_ns, ipc::Op op = ipc::Op::cuLaunchKernel) {
  return {begin_ns, end_ns, TraceKind::kCall, static_cast<uint16_t>(op), ipc::kNoTraceSlot, 0};
}

std::string Bytes(const std::vector<TraceEvent>& events) {
  return std::string(reinterpret_cast<const char*>(events.data()),
                     events.size() * sizeof(TraceEvent));
}

// An answer of lanewayd with these events on one track.
std::string Answer(uint32_t track, const std::string& bytes, uint64_t lost = 0) {
  return Json({{"ok", true},
               {"whole", true},
               {"live", 1},
               {"sessions",
                {{{"session", 3},
                  {"program", "loop"},
                  {"threads", 1},
                  {"tracks",
                   {{{"track", track},
                     {"thread", 42},
                     {"lost", lost},
                     {"events", absl::Base64Escape(bytes)}}}}}}}})
      .dump();
}

JobCalls Taken(const std::string& answer) {
  JobCalls calls;
  calls.job = 7;
  calls.begin_ns = 1000;
  calls.end_ns = 1'000'000;
  CallsAnswer told;
  EXPECT_TRUE(TakeCallsUntrusted(answer, &told, &calls));
  EXPECT_TRUE(told.whole);
  EXPECT_EQ(told.live, 1u);
  return calls;
}

// As ui.perfetto.dev needs them: slices of a thread nest, and each thread has a name.
std::vector<Json> Slices(const JobCalls& calls) {
  const Json json = Json::parse("[" + CallsJson(calls, 0) + "]");
  std::vector<Json> slices;
  std::map<uint64_t, std::vector<double>> open;
  std::map<uint64_t, std::string> names;
  for (const Json& event : json) {
    const uint64_t thread = event["tid"];
    if (event["ph"] == "M") names[thread] = event["args"]["name"];
    if (event["ph"] != "X") continue;
    EXPECT_TRUE(names.count(thread) != 0) << event;
    std::vector<double>& ends = open[thread];
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    while (!ends.empty() && ends.back() <= begin + 1e-6) ends.pop_back();
    EXPECT_TRUE(ends.empty() || end <= ends.back() + 1e-6) << event;
    ends.push_back(end);
    slices.push_back(event);
  }
  return slices;
}

TEST(CallEventsTest, EventsBecomeNamedSlicesOfTheirThreads) {
  JobCalls calls = Taken(Answer(
      kClient,
      Bytes({{2100, 2900, TraceKind::kWait, 0, 0, 1}, Call(2000, 3000, ipc::Op::cuCtxSynchronize)}),
      5));
  Order(&calls);
  const std::vector<Json> slices = Slices(calls);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0]["name"], "cuCtxSynchronize");
  EXPECT_EQ(slices[0]["pid"], 7);
  EXPECT_DOUBLE_EQ(slices[0]["ts"], 2.0);
  EXPECT_DOUBLE_EQ(slices[0]["dur"], 1.0);
  EXPECT_EQ(slices[1]["name"], "waits for the device, asleep");
  EXPECT_EQ(LossesOf(calls).events, 5u);
  EXPECT_NE(CallsJson(calls, 0).find("5 events lost"), std::string::npos);
  EXPECT_NE(CallsJson(calls, 0).find("thread 42"), std::string::npos);
}

std::string KernelRecord(uint32_t number, const std::string& name) {
  return graph::RecordBytes({.kind = TraceKind::kKernel},
                            graph::PlainBytes(ipc::KernelHead{.number = number}) + name);
}

TEST(CallEventsTest, LaunchesHaveTheNamesOfTheirKernels) {
  JobCalls calls =
      Taken(Answer(ipc::kImageTrack, KernelRecord(1, "_Z3addPf") + KernelRecord(2, "k\xff\n")));
  const uint16_t launch = static_cast<uint16_t>(ipc::Op::Launch);
  const auto device = [&](int64_t at_ns, const ipc::DeviceWork& work) {
    return TraceEvent{at_ns, at_ns + 100, TraceKind::kDevice, launch, 8, ipc::AmountOf(work)};
  };
  SessionCalls& session = calls.sessions[3];
  session.tracks[ipc::kWorkerTrack].events = {{2000, 2100, TraceKind::kServe, launch, 8, 1}};
  session.tracks[ipc::kDeviceTrack].events = {
      device(3000, {.record = 9, .kernel = 1}), device(4000, {.kernel = 2}),
      device(5000, {.kernel = 3}), device(6000, {.launches = 50})};
  NameKernels(&calls);
  Order(&calls);
  EXPECT_EQ(calls.unreadable, 0u);
  std::vector<std::string> names;
  for (const Json& slice : Slices(calls)) names.push_back(slice["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"Launch add(float*)", "add(float*)", "k??", "Launch",
                                             "50 launches"}));
}

TEST(CallEventsTest, RecordsThatAreNoNamesAreCounted) {
  JobCalls calls = Taken(Answer(
      ipc::kImageTrack, KernelRecord(1, "a") + KernelRecord(1, "b") + KernelRecord(0, "none") +
                            graph::RecordBytes({.kind = TraceKind::kImage}, "x")));
  NameKernels(&calls);
  EXPECT_EQ(calls.unreadable, 3u);
  EXPECT_EQ(calls.sessions[3].kernels_untrusted, (std::map<uint32_t, std::string>{{1, "a"}}));
}

TEST(CallEventsTest, WhatMakesNoSenseIsCountedAndLeftOut) {
  TraceEvent no_call = Call(2000, 3000);
  no_call.op = 0xffff;
  TraceEvent no_slot{2000, 3000, TraceKind::kWait, 0, ipc::limits::kStreamsMax, 0};
  const std::vector<TraceEvent> bad{
      no_call,
      no_slot,
      Call(3000, 2000),
      Call(-1, 5),
      {2000, 3000, TraceKind::kServe, 0, 0, 0},
      {2000, 3000, static_cast<TraceKind>(0), 0, 0, 0},
      {2000, 3000, static_cast<TraceKind>(ipc::kTraceKinds + 1), 0, 0, 0}};
  const JobCalls calls = Taken(Answer(kClient, Bytes(bad) + "rest"));
  EXPECT_EQ(calls.unreadable, bad.size() + 1);
  EXPECT_TRUE(calls.sessions.at(3).tracks.at(kClient).events.empty());
}

TEST(CallEventsTest, AnswersThatAreNoneAreRefused) {
  for (const char* const text :
       {"", "3", "{}", R"({"sessions":3})", R"({"sessions":[3]})", R"({"sessions":[{}]})",
        R"({"sessions":[{"tracks":[{"track":99,"events":""}]}]})",
        R"({"sessions":[{"tracks":[{"track":1,"events":"%"}]}]})"}) {
    JobCalls calls;
    CallsAnswer answer;
    EXPECT_FALSE(TakeCallsUntrusted(text, &answer, &calls)) << text;
  }
}

TEST(CallEventsTest, TheTimeOfTheTraceCuts) {
  JobCalls calls =
      Taken(Answer(kClient, Bytes({Call(10, 500), Call(10, 5000), Call(900'000, 2'000'000),
                                   Call(1'500'000, 2'000'000)})));
  Order(&calls);
  const std::vector<Json> slices = Slices(calls);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_DOUBLE_EQ(slices[0]["ts"], 1.0);
  EXPECT_DOUBLE_EQ(slices[1]["dur"], 100.0);
}

TEST(CallEventsTest, WorkOfAStreamFollowsEachOther) {
  const uint16_t op = static_cast<uint16_t>(ipc::Op::cuLaunchKernel);
  JobCalls calls =
      Taken(Answer(ipc::kDeviceTrack, Bytes({{2000, 3000, TraceKind::kDevice, op, 0, 0},
                                             {2990, 4000, TraceKind::kDevice, op, 0, 8},
                                             {2500, 2600, TraceKind::kDevice, op, 17, 0}})));
  Order(&calls);
  const std::vector<Json> slices = Slices(calls);
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_DOUBLE_EQ(slices[2]["ts"], 3.0);
  EXPECT_EQ(slices[2]["name"], "8 launches");
  EXPECT_NE(slices[0]["tid"], slices[1]["tid"]) << "streams have tracks of their own";
}

// Whatever a program writes, the slices nest.
TEST(CallEventsTest, AnyEventsNest) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 200; ++round) {
    std::vector<TraceEvent> events;
    for (int i = 0; i < 50; ++i) {
      const int64_t begin = 1 + static_cast<int64_t>(random() % 5000);
      events.push_back(Call(begin, begin + static_cast<int64_t>(random() % 3000)));
    }
    JobCalls calls = Taken(Answer(kClient, Bytes(events)));
    Order(&calls);
    (void)Slices(calls);
  }
}

TEST(CallEventsTest, StandsBesideTheTimeline) {
  JobCalls calls = Taken(Answer(kClient, Bytes({Call(2000, 3000)})));
  Order(&calls);
  JobTimeline timeline =
      BuildTimeline({{.kind = "begin", .at_us = 0, .session = 3, .job = 7, .text = "loop"},
                     {.kind = "grant", .at_us = 0, .session = 3, .job = 7, .lane = 1},
                     {.kind = "pause", .at_us = 1, .session = 3, .job = 7}},
                    7);
  Cut(calls, &timeline);
  EXPECT_EQ(timeline.pieces.at(0).begin_us, 1);
  EXPECT_EQ(timeline.pieces.at(0).end_us, 1000) << "it goes on";
  EXPECT_EQ(timeline.marks.size(), 1u);
  const Json json = Json::parse(TraceJson(timeline, CallsJson(calls, 1000)));
  EXPECT_GT(json["traceEvents"].size(), 3u);
  EXPECT_EQ(json["traceEvents"].back()["name"], "cuLaunchKernel");
  EXPECT_TRUE(Json::parse(TraceJson({}, "")).is_object());
  EXPECT_EQ(Json::parse(TraceJson({}, CallsJson(calls, 0)))["traceEvents"].size(), 2u);
}

}  // namespace
}  // namespace cli
