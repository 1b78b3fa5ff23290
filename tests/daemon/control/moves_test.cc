#include "daemon/control/moves.h"

#include <gtest/gtest.h>

#include "tests/daemon/control/parts.h"

namespace control {
namespace {

namespace wire = ipc::control;

class MovesTest : public PartsTest {
 protected:
  Moves moves_{{&children_, &scheduler_, &observers_, &lifecycle_, &grants_, &worker_link_}};
};

TEST_F(MovesTest, ASessionGoesOnInTheNextWorkerInTheNextGeneration) {
  Session* const session = Admitted(1);
  session->lane = 7;
  ASSERT_TRUE(moves_.Begin(session));
  EXPECT_TRUE(moves_.Begin(session)) << "the worker it waited for did not come";
  children_.RemoveWorker(1);
  children_.AddWorker(2);
  moves_.Serve(session);
  ASSERT_EQ(children_.SentTo<wire::AttachSession>(2).size(), 1u);
  moves_.OnEntered(session, wire::Attached{.session_id = 1});
  EXPECT_EQ(session->phase, Phase::kRunning);
  EXPECT_EQ(session->page->generation.load(), 1u);
  EXPECT_EQ(session->page->moving.load(), 0u);
  EXPECT_EQ(children_.SentTo<wire::AssignLane>(2).size(), 1u) << "its lane is told again";
}

TEST_F(MovesTest, ARefusedSessionIsLostForItsProgram) {
  Session* const session = Admitted(1);
  ASSERT_TRUE(moves_.Begin(session));
  moves_.Serve(session);
  wire::Attached refused{.session_id = 1};
  refused.result = 2;
  moves_.OnEntered(session, refused);
  EXPECT_NE(session->page->loss.load(), 0u);
}

TEST_F(MovesTest, NoSessionMovesWhileLanewaydEnds) {
  scheduler_.Stop();
  EXPECT_FALSE(moves_.Begin(Admitted(1)));
}

TEST_F(MovesTest, ALostSessionIsListedWhileItsProgramLives) {
  Session* const session = Admitted(1);
  moves_.Lose(session, "the worker ended");
  EXPECT_EQ(session->phase, Phase::kLost);
  EXPECT_STREQ(session->page->loss_text, "the worker ended");
  Admitted(2)->phase = Phase::kEnding;
  moves_.Lose(sessions_.Find(2), "the worker ended");
  EXPECT_EQ(sessions_.Find(2), nullptr);
}

}  // namespace
}  // namespace control
