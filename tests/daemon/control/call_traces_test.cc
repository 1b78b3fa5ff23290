#include "daemon/control/call_traces.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/escaping.h"
#include "daemon/control/session_files.h"
#include "ipc/call_trace.h"
#include "ipc/trace_switch.h"
#include "tests/daemon/control/testing.h"

namespace control {
namespace {

using Json = nlohmann::json;

int64_t clock_ns = 0;

class CallTracesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    clock_ns = 1'000'000'000;
    session_ = AddRunning(&sessions_, 1);
    ASSERT_TRUE(MakeWorkerFiles(session_).ok());
  }
  Json Do(const char* what, uint64_t number = 0, uint64_t job = 10) {
    return Json::parse(traces_.Do({.name = "trace", .id = job, .text = what, .value = number}));
  }
  uint64_t Begun() { return Do("begin").value("trace", uint64_t{0}); }
  uint32_t Traced() const { return ipc::TraceSwitchOf(session_->page.get())->number.load(); }

  common::EventLoop loop_{&epoll_ctl, [] { return clock_ns; }};
  SessionTable sessions_;
  Session* session_ = nullptr;
  CallTraces traces_{{&sessions_, &loop_, [] { return clock_ns / 1000; }}};
};

TEST_F(CallTracesTest, EventsReachTheCommand) {
  const uint64_t number = Begun();
  EXPECT_EQ(Traced(), number);
  const absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(session_->fds.file.get());
  ASSERT_TRUE(file.ok());
  ipc::TraceWriter writer(file->trace_area(), 2, 99);
  writer.Add({.begin_ns = 1, .end_ns = 2});
  const Json answer = Do("more", number);
  EXPECT_TRUE(answer["whole"]);
  EXPECT_EQ(answer["live"], 1);
  const Json& session = answer["sessions"][0];
  EXPECT_EQ(session["session"], 1);
  ASSERT_EQ(session["tracks"].size(), 1u);
  EXPECT_EQ(session["tracks"][0]["thread"], 99);
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(session["tracks"][0]["events"].get<std::string>(), &bytes));
  EXPECT_EQ(bytes.size(), sizeof(ipc::TraceEvent));
  EXPECT_TRUE(Do("more", number)["sessions"][0]["tracks"].empty()) << "once";
}

TEST_F(CallTracesTest, DetailsAreThereForWhoAsks) {
  const std::atomic<uint32_t>& details = ipc::TraceSwitchOf(session_->page.get())->details;
  EXPECT_TRUE(Do("end", Begun())["ok"]);
  EXPECT_EQ(details.load(), 0u);
  const uint64_t number = Do("begin", 1).value("trace", uint64_t{0});
  EXPECT_EQ(Traced(), number);
  EXPECT_EQ(details.load(), 1u);
  Session* const second = AddRunning(&sessions_, 2);
  second->record.job.number = 10;
  ASSERT_TRUE(MakeWorkerFiles(second).ok());
  Do("more", number);
  EXPECT_EQ(ipc::TraceSwitchOf(second->page.get())->details.load(), 1u);
  EXPECT_TRUE(Do("end", number)["ok"]);
  EXPECT_EQ(details.load(), 0u);
}

TEST_F(CallTracesTest, WhatWasWrittenLastIsThereAfterTheEnd) {
  const uint64_t number = Begun();
  const absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(session_->fds.file.get());
  ASSERT_TRUE(file.ok());
  ipc::TraceWriter writer(file->trace_area(), 2, 99);
  writer.Add({.begin_ns = 1, .end_ns = 2});
  session_ = nullptr;
  sessions_.Remove(1);
  const Json answer = Do("end", number);
  EXPECT_EQ(answer["live"], 0);
  EXPECT_EQ(answer["sessions"][0]["tracks"].size(), 1u);
}

TEST_F(CallTracesTest, OneCommandAtATime) {
  const uint64_t number = Begun();
  EXPECT_FALSE(Do("begin")["ok"]);
  EXPECT_FALSE(Do("more", number + 1)["ok"]);
  EXPECT_TRUE(Do("end", number)["ok"]);
  EXPECT_EQ(Traced(), 0u);
  const uint64_t next = Begun();
  EXPECT_NE(next, number);
  EXPECT_FALSE(Do("more", number)["ok"]) << "the first command's trace is another's now";
  EXPECT_EQ(Traced(), next);
}

TEST_F(CallTracesTest, ASilentCommandLosesItsTrace) {
  const uint64_t number = Begun();
  clock_ns += CallTraces::kSilenceUs * 1000 / 2;
  EXPECT_TRUE(Do("more", number)["ok"]);
  clock_ns += CallTraces::kSilenceUs * 1000 * 3 / 4;
  loop_.HandleReady();
  EXPECT_EQ(Traced(), number) << "it asked in between";
  EXPECT_EQ(ipc::TraceNumber(ipc::TraceSwitchOf(session_->page.get()), clock_ns), number);
  clock_ns += CallTraces::kSilenceUs * 1000 * 2;
  EXPECT_EQ(ipc::TraceNumber(ipc::TraceSwitchOf(session_->page.get()), clock_ns), 0u)
      << "a writer ends it";
  loop_.HandleReady();
  EXPECT_FALSE(Do("more", number)["ok"]);
  EXPECT_TRUE(Do("begin")["ok"]);
}

TEST_F(CallTracesTest, SessionsThatComeLaterAreTraced) {
  const uint64_t number = Begun();
  Session* const second = AddRunning(&sessions_, 2);
  second->record.job.number = 10;
  ASSERT_TRUE(MakeWorkerFiles(second).ok());
  EXPECT_EQ(Do("more", number)["sessions"].size(), 2u);
  EXPECT_EQ(ipc::TraceSwitchOf(second->page.get())->number.load(), number);
}

TEST_F(CallTracesTest, Refusals) {
  EXPECT_NE(Do("begin", 0, 99)["sentence"].get<std::string>().find("laneway ps"),
            std::string::npos);
  session_->worker = 0;  // the program is its own
  EXPECT_NE(Do("begin")["sentence"].get<std::string>().find("in-process"), std::string::npos);
  session_->phase = Phase::kQueued;
  session_->fds.file.Reset();
  EXPECT_NE(Do("begin")["sentence"].get<std::string>().find("when it runs"), std::string::npos);
}

}  // namespace
}  // namespace control
