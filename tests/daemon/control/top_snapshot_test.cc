#include "daemon/control/top_snapshot.h"

#include <gtest/gtest.h>
#include "tests/daemon/control/testing.h"

namespace control {
namespace {

class LiveTest : public ::testing::Test {
 protected:
  // A session that runs in a worker and has work, without its lane.
  scheduler::Session* Add(uint64_t id) {
    sessions_.Add({.session_id = id}, AnyLink())->phase = Phase::kRunning;
    scheduler::Session& session = state_.sessions[id];
    session.id = id;
    session.arrival = id;
    session.phase = scheduler::Phase::kAdmitted;
    session.runnable = true;
    return &session;
  }
  std::vector<SessionView> Views() const {
    return ViewsOf({children_, sessions_, state_, sampler_, use_, 1'000'000});
  }

  const FakeChildren children_{};
  SessionTable sessions_;
  scheduler::State state_;
  const IterationSampler sampler_{};
  const DeviceUse use_{};
};

TEST_F(LiveTest, APausedSessionIsShownAsPaused) {
  scheduler::Session* const session = Add(1);
  EXPECT_EQ(Views().at(0).state, "waits");
  session->pause = scheduler::Pause::kPaused;
  EXPECT_EQ(Views().at(0).state, "paused");
  session->pause = scheduler::Pause::kEvicted;
  EXPECT_EQ(Views().at(0).state, "evicted");
}

TEST_F(LiveTest, APausedSessionHasNoRank) {
  scheduler::Session* const first = Add(1);
  Add(2);
  EXPECT_EQ(Views().at(0).rank, 1u);
  EXPECT_EQ(Views().at(1).rank, 2u);
  first->pause = scheduler::Pause::kPaused;
  EXPECT_EQ(Views().at(0).rank, 0u);
  EXPECT_EQ(Views().at(1).rank, 1u);
}

}  // namespace
}  // namespace control
