#include "daemon/control/views.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/daemon/control/testing.h"

namespace control {
namespace {

class ViewsTest : public ::testing::Test {
 protected:
  bool Says(uint64_t job, const std::string& text) const {
    return views_.Why(job).find(text) != std::string::npos;
  }

  common::EventLoop loop_;
  const ipc::Options options_{};
  FakeChildren children_;
  SessionTable sessions_;
  scheduler::State state_;
  Observers observers_{"", {&loop_, &sessions_, &state_}};
  const Views views_{{&options_, &children_, &sessions_, &state_, &observers_}, [] { return 1; }};
};

TEST_F(ViewsTest, WhyIsThePhasesToSayUnlessTheSessionRuns) {
  Session* const session = AddRunning(&sessions_, 1);
  session->phase = Phase::kMoving;
  EXPECT_TRUE(Says(10, "moves to another worker"));
  session->phase = Phase::kLost;
  EXPECT_TRUE(Says(10, "lost its worker"));
  session->phase = Phase::kRunning;
  EXPECT_FALSE(Says(10, "worker"));
  session->refusal = "no room";
  EXPECT_TRUE(Says(10, "its last request for memory was refused: no room"));
}

TEST_F(ViewsTest, WhyNamesTheJobsThatAreAskedFor) {
  AddRunning(&sessions_, 1);
  AddRunning(&sessions_, 2);
  EXPECT_TRUE(Says(0, R"("session":1)") && Says(0, R"("session":2)"));
  EXPECT_FALSE(Says(20, R"("session":1)"));
  EXPECT_TRUE(Says(30, "there is no job 30"));
}

TEST_F(ViewsTest, MetricsCountFaults) {
  observers_.AddFault({1, 10, "program", 700, "it faulted"});
  EXPECT_NE(views_.Metrics().find("laneway_faults_total 1"), std::string::npos);
}

}  // namespace
}  // namespace control
