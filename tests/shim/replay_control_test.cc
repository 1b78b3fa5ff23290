// Which calls may be held back, and from which iteration on a program is replayed.
#include "shim/replay_control.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "ipc/calls/limits.h"
#include "ipc/message.h"
#include "ipc/ring.h"

namespace shim {
namespace {

using Kind = ipc::ReplayMode::Kind;

// A ring whose worker takes at once whatever comes.
class ReplayControlTest : public testing::Test {
 protected:
  static constexpr uint32_t kCalls = 10;  // of an iteration

  void Open(Kind kind) {
    std::unique_ptr<ipc::RingSender> ring =
        std::make_unique<ipc::RingSender>(&words_, data_.data(), &doorbell_);
    ipc::RingSender* const below = ring.get();
    sender_ = std::make_unique<ChunkSender>(std::move(ring), below, std::span(area_));
    control_.Open({.kind = kind, .verify_every = 1}, sender_.get(), &client_words_, &memory_);
  }
  void Iterate() {
    for (uint32_t i = 0; i < kCalls; ++i) Call(i);
  }
  void Call(uint32_t number) {
    using Fold = ChunkSender::Fold;
    if (control_.ForNextCall() == nullptr) return Send(number, Fold::kAlone);
    Send(number, number + 1 == kCalls ? Fold::kEndsRun : Fold::kFolds);
  }
  void EndIteration() {
    Send(99, ChunkSender::Fold::kAlone);
    control_.OnBoundary();
  }
  void Send(uint32_t number, ChunkSender::Fold fold) {
    ipc::MessageHeader header;
    header.op = static_cast<uint16_t>(number);
    header.bytes = sizeof header + 40;
    sender_->Begin(fold);
    const std::span<std::byte> room = sender_->Reserve(header.bytes, 0);
    ASSERT_EQ(room.size(), header.bytes);
    std::memset(room.data(), 0, room.size());
    std::memcpy(room.data(), &header, sizeof header);
    sender_->Commit(header.bytes);
    words_.tail.store(words_.head.load());
  }
  struct Memory : public MemoryAtBoundary {
    Wishes OnBoundary() override { return {}; }
    void HoldFreed(bool now) override { holds = now; }
    void OnAllSent() override {}
    void Unmapped(const std::vector<arena::Range>&) override {}
    bool holds = false;
  };
  uint64_t repeated() const { return sender_->counts().repeated; }

  ipc::RingWords words_{};
  std::vector<std::byte> data_ = std::vector<std::byte>(2 * ipc::limits::kRingBytes);
  std::vector<std::byte> area_ = std::vector<std::byte>(ipc::limits::kChunkAreaBytes);
  std::atomic<uint32_t> doorbell_{0};
  ipc::ClientWords client_words_{};
  std::unique_ptr<ChunkSender> sender_;
  Memory memory_;
  ReplayControl control_;
};

TEST_F(ReplayControlTest, AlwaysRepeatsTheThirdIterationOn) {
  Open(Kind::kAlways);
  Iterate();
  Iterate();
  EXPECT_EQ(repeated(), 0u);
  Iterate();
  EXPECT_EQ(repeated(), kCalls);
}

// No message of such an iteration says that a wait follows.
TEST_F(ReplayControlTest, AWaitEndsARunThatIsNotHeld) {
  Open(Kind::kAlways);
  for (int i = 0; i < 3; ++i) {
    for (uint32_t call = 0; call < 40; ++call) Call(call % 3);
    if (!sender_->in_run()) continue;
    sender_->Begin(ChunkSender::Fold::kAlone);
    ASSERT_FALSE(sender_->Reserve(sizeof(ipc::MessageHeader), 0).empty());
    EXPECT_FALSE(sender_->in_run());
  }
  EXPECT_EQ(repeated(), 40u);
}

// The detector finds the loop when it sees two iterations.
TEST_F(ReplayControlTest, AutoRepeatsTheIterationAfterTheFirstBoundary) {
  Open(Kind::kAuto);
  Iterate();
  Iterate();
  EndIteration();
  Iterate();
  EXPECT_EQ(repeated(), kCalls);
}

TEST_F(ReplayControlTest, AutoHoldsNothingBeforeAnIterationIsFound) {
  Open(Kind::kAuto);
  for (int i = 0; i < 5; ++i) {
    Call(0);
    EXPECT_FALSE(sender_->holds());
    for (uint32_t number = 1; number < kCalls; ++number) Call(number);
  }
  EXPECT_EQ(repeated(), 0u);
}

TEST_F(ReplayControlTest, AProgramWithoutIterationsIsLearnedForAWhile) {
  Open(Kind::kAuto);
  for (uint32_t i = 0; i + 1 < ReplayControl::kCallsToLearn; ++i)
    ASSERT_NE(control_.ForNextCall(), nullptr);
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(control_.ForNextCall(), nullptr);
  for (int i = 0; i < 3; ++i) {
    EndIteration();
    Iterate();
  }
  EXPECT_EQ(repeated(), kCalls) << "iterations are found after all";
}

TEST_F(ReplayControlTest, FreedMemoryMayWaitWhereIterationsAreReplayed) {
  Open(Kind::kAlways);
  EXPECT_TRUE(memory_.holds);
}

// Also in the iterations of a comparison that are forwarded.
TEST_F(ReplayControlTest, UnderAutoFreedMemoryMayWaitUntilReplayIsFoundSlower) {
  Open(Kind::kAuto);
  EXPECT_FALSE(memory_.holds) << "no iteration was found";
  constexpr uint32_t kCompared = 2 * BenefitGate::kPairs * BenefitGate::kBlock;
  for (uint32_t i = 0; i < BenefitGate::kLearn + kCompared; ++i) {
    EndIteration();
    ASSERT_TRUE(memory_.holds) << i;
  }
  EndIteration();  // nothing was repeated
  EXPECT_FALSE(memory_.holds);
}

}  // namespace
}  // namespace shim
