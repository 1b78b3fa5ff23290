#include "daemon/control/lifetime.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/daemon/control/parts.h"

namespace control {
namespace {

class LifetimeTest : public PartsTest {
 protected:
  std::vector<std::string> told_;     // to the starter
  std::vector<std::string> reasons_;  // of the stop
  Lifetime lifetime_{&core_, [this](const std::string& failure) { told_.push_back(failure); },
                     [this](const std::string& reason) { reasons_.push_back(reason); }};
};

TEST_F(LifetimeTest, TheStarterIsToldOnceWhenAWorkerIsReady) {
  children_.RemoveWorker(1);
  lifetime_.Reconcile();
  EXPECT_TRUE(lifetime_.starting());
  children_.AddWorker(2);
  lifetime_.Reconcile();
  lifetime_.Reconcile();
  EXPECT_FALSE(lifetime_.starting());
  EXPECT_EQ(told_, std::vector<std::string>{""});
}

TEST_F(LifetimeTest, AFailureWhileItStartsIsItsEndAndALaterOneIsNot) {
  lifetime_.OnFailure("no device");
  EXPECT_EQ(told_, std::vector<std::string>{"no device"});
  EXPECT_EQ(reasons_, std::vector<std::string>{"no device"});
  EXPECT_TRUE(children_.stopped());
  EXPECT_EQ(lifetime_.exit_code(), 1);
  lifetime_.OnFailure("no keeper");
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(LifetimeTest, WithProgramsItStopsOnlyByForceAndMarksThemLost) {
  Session* const session = Admitted(1);
  EXPECT_NE(lifetime_.StopUnlessUsed(false, 0), "");
  EXPECT_FALSE(children_.stopped());
  EXPECT_EQ(lifetime_.StopUnlessUsed(true, 0), "");
  EXPECT_TRUE(children_.stopped());
  EXPECT_NE(session->page->loss.load(), 0u);
}

TEST_F(LifetimeTest, ToldToEndWhileProgramsRunItLeavesThemRunning) {
  Session* const session = Admitted(1);
  lifetime_.OnTerminate(0);
  EXPECT_FALSE(children_.stopped());
  EXPECT_EQ(session->page->loss.load(), 0u);
  loop_.Run();  // returns: it has ended
  EXPECT_EQ(lifetime_.exit_code(), 0);
}

}  // namespace
}  // namespace control
