// A session that is left at a quiet point and taken over by another worker, without a device.
#include "daemon/worker/session_handover.h"

#include <gtest/gtest.h>

#include <memory>

namespace worker {
namespace {

constexpr uint32_t kGeneration = 3;

class SessionHandoverTest : public ::testing::Test, public Quiesce {
 protected:
  bool PollFrees() override {
    ++polls_;
    return frees_are_done_;
  }
  bool IsComplete() override { return polls_ >= complete_at_; }
  void SaveForSuccessor() override { ++saves_; }
  bool MayLeave() override { return may_leave_; }

  // The ring's position up to which messages were taken.
  void Take(uint64_t position) {
    page_->to_worker.tail.store(position);
    was_quiet_ = handover_.OnTaken();
  }
  uint64_t quiet_position() const { return page_->quiet_position.load(); }

  std::unique_ptr<ipc::SessionPage> page_ = std::make_unique<ipc::SessionPage>();
  ipc::Progress progress_{};
  SessionLife life_{page_.get(), kGeneration};
  Parking parking_{page_.get(), &progress_, [] { return true; }};
  SessionHandover handover_{{page_.get(), &life_, &parking_, this}};
  bool frees_are_done_ = true;
  bool may_leave_ = true;
  bool was_quiet_ = false;
  int polls_ = 0;
  int complete_at_ = 0;  // of polls_
  int saves_ = 0;
};

// --- quiet points --------------------------------------------------------------------------------

TEST_F(SessionHandoverTest, AQuietPointIsPublishedOnceAllIsComplete) {
  EXPECT_TRUE(handover_.quiet());
  Take(64);
  EXPECT_TRUE(was_quiet_);
  EXPECT_FALSE(handover_.quiet());
  complete_at_ = 2;
  handover_.Publish();
  EXPECT_FALSE(handover_.quiet());
  EXPECT_EQ(quiet_position(), 0u);
  handover_.Publish();
  EXPECT_TRUE(handover_.quiet());
  EXPECT_EQ(quiet_position(), 64u);
  EXPECT_EQ(saves_, 1);
}

TEST_F(SessionHandoverTest, MemoryThatTheDeviceStillUsesIsNoQuietPoint) {
  Take(64);
  frees_are_done_ = false;
  handover_.Publish();
  EXPECT_FALSE(handover_.quiet());
  frees_are_done_ = true;
  handover_.Publish();
  EXPECT_TRUE(handover_.quiet());
}

TEST_F(SessionHandoverTest, AQuietSessionSavesNothingAgainButItsFreesGoOn) {
  Take(64);
  handover_.Publish();
  handover_.Publish();
  EXPECT_EQ(saves_, 1);
  EXPECT_EQ(polls_, 2);
}

TEST_F(SessionHandoverTest, AMessageWithoutEffectIsTakenAgain) {
  Take(64);
  handover_.Publish();
  Take(128);
  EXPECT_TRUE(was_quiet_);
  handover_.UndoTaken();
  EXPECT_EQ(page_->to_worker.tail.load(), 64u);
}

TEST_F(SessionHandoverTest, TheSecondMessageOfTwoWasNotTakenFromAQuietSession) {
  Take(64);
  Take(128);
  EXPECT_FALSE(was_quiet_);
}

// --- leaving -------------------------------------------------------------------------------------

TEST_F(SessionHandoverTest, ItLeavesWhenTheDeviceGetsDone) {
  Take(64);
  handover_.Release();
  EXPECT_TRUE(handover_.wanted());
  EXPECT_TRUE(parking_.IsPoked()) << "its thread may sleep";
  complete_at_ = 3;
  EXPECT_TRUE(handover_.TryLeave());
  EXPECT_EQ(polls_, 3);
  EXPECT_FALSE(handover_.released()) << "what it held is yet to be left";
  handover_.Left();
  EXPECT_TRUE(handover_.released());
}

TEST_F(SessionHandoverTest, InsideAnIterationItGoesOn) {
  Take(64);
  may_leave_ = false;
  EXPECT_FALSE(handover_.TryLeave());
  EXPECT_EQ(polls_, 0);
}

TEST_F(SessionHandoverTest, AStreamThatWaitsForTheNextMessageGetsIt) {
  Take(64);
  complete_at_ = 1'000'000;
  EXPECT_FALSE(handover_.TryLeave());
}

TEST_F(SessionHandoverTest, ASessionThatEndsDoesNotLeave) {
  Take(64);
  complete_at_ = 1'000'000;
  life_.Stop();
  EXPECT_FALSE(handover_.TryLeave());
  EXPECT_EQ(polls_, 1);
}

// --- taking over ---------------------------------------------------------------------------------

using Entry = SessionHandover::Entry;

TEST_F(SessionHandoverTest, ItServesOnceItsClientHasPutTheRingInOrder) {
  page_->acknowledged.store(kGeneration);
  EXPECT_EQ(handover_.AwaitClient(), Entry::kServe);
}

TEST_F(SessionHandoverTest, WhileItsClientSleepsItMayMoveAgain) {
  page_->acknowledged.store(kGeneration - 1);
  handover_.Release();
  EXPECT_EQ(handover_.AwaitClient(), Entry::kLeave);
}

TEST_F(SessionHandoverTest, ALostSessionEndsWithoutItsClient) {
  life_.Lose("lost");
  EXPECT_EQ(handover_.AwaitClient(), Entry::kEnd);
}

TEST_F(SessionHandoverTest, ASessionThatIsLostWhileItMayMoveEnds) {
  handover_.Release();
  life_.Stop();
  EXPECT_EQ(handover_.AwaitClient(), Entry::kEnd);
}

TEST_F(SessionHandoverTest, ASessionOfNoOtherWorkerServesAtOnce) {
  SessionLife fresh(page_.get(), 0);
  SessionHandover first({page_.get(), &fresh, &parking_, this});
  EXPECT_EQ(first.AwaitClient(), Entry::kServe);
}

}  // namespace
}  // namespace worker
