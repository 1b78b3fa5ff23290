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
    verdicts_.Open(&verdict_area_, &client_words_, &namer_);
    control_.Open({.kind = kind, .verify_every = 1}, sender_.get(), &client_words_, &memory_,
                  &verdicts_);
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
    control_.OnBoundary(body_);
  }
  void Know(const ipc::ReplayVerdict& verdict) {
    verdict_area_.known[verdict_area_.known_count++] = verdict;
  }
  // The program has come to its loop, and an earlier start to this verdict.
  void StartKnowing(const ipc::ReplayVerdict& verdict) {
    Know(verdict);
    Open(Kind::kAuto);
    Iterate();
    Iterate();
  }
  const ipc::ToldVerdict& Told(uint32_t number) const { return verdict_area_.told[number]; }
  uint32_t told() const { return client_words_.verdicts_told; }
  ipc::ReplayState state() const {
    return static_cast<ipc::ReplayState>(client_words_.replay_state.load());
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
  // Bodies whose name is their number in hundreds.
  struct Namer : public BodyNamer {
    explicit Namer(const uint32_t* body) : body(*body) {}
    uint64_t NameOfLast() override {
      ++asked;
      return first != 0 ? std::exchange(first, 0) : 100 * uint64_t{body};
    }
    const uint32_t& body;
    int asked = 0;
    uint64_t first = 0;  // in place of the next name
  };
  uint64_t repeated() const { return sender_->counts().repeated; }

  ipc::RingWords words_{};
  std::vector<std::byte> data_ = std::vector<std::byte>(2 * ipc::limits::kRingBytes);
  std::vector<std::byte> area_ = std::vector<std::byte>(ipc::limits::kChunkAreaBytes);
  std::atomic<uint32_t> doorbell_{0};
  ipc::ClientWords client_words_{};
  std::unique_ptr<ChunkSender> sender_;
  Memory memory_;
  uint32_t body_ = 1;  // of the iteration that ends
  Namer namer_{&body_};
  ipc::VerdictArea verdict_area_{};
  KeptVerdicts verdicts_;
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

// --- what an earlier start has measured ----------------------------------------------------------

constexpr uint32_t kBothWays = 2 * BenefitGate::kPairs * BenefitGate::kBlock;

TEST_F(ReplayControlTest, ABodyThatWasFasterIsReplayedFromItsThirdIterationOnWithoutAComparison) {
  StartKnowing({.body = 100, .permille = 700, .replays = 1});
  for (uint32_t i = 1; i < BenefitGate::kLearn + kBothWays + 10; ++i) {
    EndIteration();
    Iterate();
    ASSERT_EQ(repeated(), i * kCalls);
    ASSERT_EQ(state(), ipc::ReplayState::kReplaying);
  }
  EXPECT_EQ(client_words_.comparisons, 0u);
  EXPECT_EQ(client_words_.replay_permille, 700u);
  EXPECT_EQ(client_words_.replay_kept, 1u);
  ASSERT_EQ(told(), 1u);
  EXPECT_EQ(Told(0).kind, ipc::ToldVerdict::kTaken);
  EXPECT_EQ(Told(0).verdict.body, 100u);
}

TEST(ReplayVerdictTest, ARatioThatWasKeptIsKeptUnchanged) {
  for (uint32_t permille = 0; permille <= ipc::kReplayPermilleMax; ++permille)
    ASSERT_EQ(ipc::PermilleOf(ipc::RatioOfUntrusted(permille)), permille);
  EXPECT_EQ(ipc::PermilleOf(1e-9), 1u) << "0 would say that nothing was measured";
  EXPECT_EQ(ipc::PermilleOf(1e9), ipc::kReplayPermilleMax);
  EXPECT_EQ(ipc::RatioOfUntrusted(~0u), ipc::kReplayPermilleMax / 1000.0);
}

TEST_F(ReplayControlTest, AVerdictThatWasTakenOverIsShownAsItWasKept) {
  StartKnowing({.body = 100, .permille = 1001, .replays = 0});
  EndIteration();
  EXPECT_EQ(client_words_.replay_permille, 1001u);
}

TEST_F(ReplayControlTest, ABodyThatWasSlowerIsNeitherReplayedNorHeldBack) {
  StartKnowing({.body = 100, .permille = 1230, .replays = 0});
  for (uint32_t i = 0; i < BenefitGate::kLearn + kBothWays; ++i) {
    EndIteration();
    Call(0);
    ASSERT_FALSE(sender_->holds());
    ASSERT_FALSE(memory_.holds);
    for (uint32_t number = 1; number < kCalls; ++number) Call(number);
  }
  EXPECT_EQ(repeated(), 0u);
  EXPECT_EQ(state(), ipc::ReplayState::kSlower);
}

// The detector follows a part of the loop at first, of which nothing repeats.
TEST_F(ReplayControlTest, AVerdictIsShownAlsoWhereTheLastOneWasToForward) {
  Know({.body = 200, .permille = 1230, .replays = 0});
  Open(Kind::kAuto);
  for (uint32_t i = 0; i <= BenefitGate::kLearn + kBothWays; ++i) EndIteration();
  ASSERT_EQ(state(), ipc::ReplayState::kNothingRepeats);
  body_ = 2;
  EndIteration();
  EXPECT_EQ(state(), ipc::ReplayState::kSlower);
  EXPECT_EQ(client_words_.replay_permille, 1230u);
  EXPECT_EQ(client_words_.replay_kept, 1u);
}

TEST_F(ReplayControlTest, AVerdictThatWasTakenOverIsComparedLater) {
  StartKnowing({.body = 100, .permille = 700, .replays = 1});
  for (uint32_t i = 0; i <= BenefitGate::kFirstRest; ++i) {
    EXPECT_EQ(client_words_.comparisons, 0u);
    EndIteration();
    Iterate();
  }
  EXPECT_EQ(client_words_.comparisons, 1u);
  EXPECT_EQ(client_words_.replay_kept, 0u);
}

TEST_F(ReplayControlTest, AnotherBodysVerdictIsNotTakenOver) {
  StartKnowing({.body = 200, .permille = 1230, .replays = 0});
  EndIteration();
  EXPECT_EQ(state(), ipc::ReplayState::kLearning);
  body_ = 2;  // a loop that the program comes to later
  EndIteration();
  EXPECT_EQ(state(), ipc::ReplayState::kSlower);
}

TEST_F(ReplayControlTest, ALaterLoopIsReplayedByItsOwnVerdict) {
  Know({.body = 100, .permille = 700, .replays = 1});
  Know({.body = 200, .permille = 900, .replays = 1});
  Open(Kind::kAuto);
  EndIteration();
  EXPECT_EQ(client_words_.replay_permille, 700u);
  body_ = 2;
  EndIteration();
  EXPECT_EQ(client_words_.replay_permille, 900u);
  EXPECT_EQ(told(), 2u);
}

// It may hold work that the program does once.
TEST_F(ReplayControlTest, TheFirstIterationOfABodyMayDiffer) {
  Know({.body = 300, .permille = 1230, .replays = 0});
  Open(Kind::kAuto);
  EndIteration();
  body_ = 3;
  namer_.first = 400;
  EndIteration();
  EXPECT_EQ(state(), ipc::ReplayState::kLearning);
  EndIteration();
  EXPECT_EQ(state(), ipc::ReplayState::kSlower);
}

// The name of a body takes time for each of its operations.
TEST_F(ReplayControlTest, BodiesAreNamedOnlyWhereAVerdictMayBeKnown) {
  Open(Kind::kAuto);
  for (uint32_t i = 0; i < BenefitGate::kLearn; ++i) EndIteration();
  EXPECT_EQ(namer_.asked, 0) << "lanewayd knows of none";
  Know({.body = 200, .permille = 700, .replays = 1});
  for (uint32_t i = 0; i < 3; ++i) EndIteration();
  EXPECT_LE(namer_.asked, 1) << "the comparison alone names its body";
}

TEST_F(ReplayControlTest, OtherModesTakeNoVerdictOver) {
  Know({.body = 100, .permille = 1230, .replays = 0});
  Open(Kind::kAlways);
  for (int i = 0; i < 4; ++i) {
    Iterate();
    EndIteration();
  }
  EXPECT_EQ(repeated(), 2 * kCalls);
  EXPECT_EQ(told(), 0u);
}

TEST_F(ReplayControlTest, AMeasuredVerdictIsToldUnderTheNameOfItsBody) {
  Open(Kind::kAuto);
  Iterate();
  Iterate();
  for (uint32_t i = 0; i <= BenefitGate::kLearn + kBothWays; ++i) {
    EndIteration();
    Iterate();
  }
  ASSERT_EQ(told(), 1u);
  EXPECT_EQ(Told(0).kind, ipc::ToldVerdict::kMeasured);
  EXPECT_EQ(Told(0).verdict.body, 100u);
  EXPECT_EQ(Told(0).verdict.replays, state() == ipc::ReplayState::kReplaying ? 1u : 0u);
  EXPECT_EQ(client_words_.replay_kept, 0u);
}

// --- which body a comparison is of ---------------------------------------------------------------

class KeptVerdictsTest : public ReplayControlTest {
 protected:
  KeptVerdictsTest() {
    verdicts_.Open(&verdict_area_, &client_words_, &namer_);
    verdicts_.BeginComparison();
  }
  void Compare(uint32_t body, int iterations) {
    body_ = body;
    for (int i = 0; i < iterations; ++i) verdicts_.OnCompared(body);
  }
};

TEST_F(KeptVerdictsTest, AFewOtherIterationsDoNotMatter) {
  Compare(1, 40);
  Compare(2, 20);
  verdicts_.Tell(0.7, true);
  ASSERT_EQ(told(), 1u);
  EXPECT_EQ(Told(0).verdict, (ipc::ReplayVerdict{100, 700, 1}));
}

// At first the detector of iterations may follow a part of the loop.
TEST_F(KeptVerdictsTest, TheBodyOfMostIterationsIsNamedWhereverItComes) {
  Compare(1, 3);
  Compare(2, 1);
  Compare(3, 56);
  verdicts_.Tell(0.7, true);
  ASSERT_EQ(told(), 1u);
  EXPECT_EQ(Told(0).verdict.body, 300u);
  EXPECT_LE(namer_.asked, 3);
}

TEST_F(KeptVerdictsTest, OfTwoBodiesThatTakeTurnsTheFirstIsNamed) {
  for (int i = 0; i < 30; ++i) {
    Compare(1, 1);
    Compare(2, 1);
  }
  verdicts_.Tell(0.7, true);
  ASSERT_EQ(told(), 1u);
  EXPECT_EQ(Told(0).verdict.body, 100u);
  EXPECT_EQ(namer_.asked, 1);
}

TEST_F(KeptVerdictsTest, AComparisonOfManyBodiesNamesNone) {
  for (uint32_t body = 1; body <= 3; ++body) Compare(body, 20);
  verdicts_.Tell(0.7, true);
  EXPECT_EQ(told(), 0u);
}

TEST_F(KeptVerdictsTest, ABodyWithoutANameIsNotTold) {
  Compare(0, 60);
  verdicts_.Tell(0.7, true);
  EXPECT_EQ(told(), 0u);
}

TEST_F(KeptVerdictsTest, LaterVerdictsGoOnInTheCircle) {
  Compare(1, 60);
  for (uint32_t i = 0; i < ipc::VerdictArea::kTold + 1; ++i) verdicts_.Tell(0.001 * (i + 1), true);
  EXPECT_EQ(told(), ipc::VerdictArea::kTold + 1);
  EXPECT_EQ(Told(0).verdict.permille, ipc::VerdictArea::kTold + 1);
  EXPECT_EQ(Told(1).verdict.permille, 2u);
}

}  // namespace
}  // namespace shim
