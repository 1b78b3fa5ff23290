// What a client sends in chunks reaches the worker as it was: every message once, in order, byte
// for byte, whatever the program repeats and wherever a run ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/harness/seed.h"
#include "tests/ipc/chunks/chunk_pair.h"

namespace ipc {
namespace {

TEST_F(ChunksTest, ARunIsOneMessageFromItsThirdTime) {
  for (uint32_t time = 0; time < 4; ++time) {
    sent_.clear();
    Iterate(10, 5);
    EXPECT_EQ(sent_.size(), time < 2 ? 10u : 1u);
  }
  EXPECT_EQ(matcher_.patches().size(), 0u);
}

// The client waits by another message the second time, and by that one from then on.
TEST_F(ChunksTest, ARunIsKnownByWhatComesBeforeTheWait) {
  const auto run = [&] {
    for (uint16_t i = 0; i < 10; ++i) Send(Message(static_cast<uint16_t>(7 + i), {i}));
  };
  run();
  SendAlone(Message(1, {}));
  run();
  Send(Message(2, {}), true);
  sent_.clear();
  given_.clear();
  run();
  Send(Message(2, {}), true);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(matcher_.repeated_messages(), 11u);
  Receive();
  EXPECT_TRUE(given_.empty());
}

TEST_F(ChunksTest, OfLessThanThreeMessagesNoChunkIsMade) {
  for (uint32_t time = 0; time < 9; ++time) Iterate(2, 5);
  EXPECT_EQ(matcher_.chunks(), 0u);
  for (uint32_t time = 0; time < 9; ++time) Iterate(3, 5);
  EXPECT_EQ(matcher_.chunks(), 1u);
}

TEST_F(ChunksTest, RunsThatMayNotBeHeldAreLearned) {
  matcher_.MayHold(false);
  for (int i = 0; i < 4; ++i) Iterate(10, 0);
  EXPECT_EQ(sent_.size(), 40u);
  EXPECT_EQ(matcher_.chunks(), 1u);
  EXPECT_EQ(matcher_.counts().repeated, 0u);
  Send(Message(7, {0, 1}));
  EXPECT_FALSE(matcher_.holds());
  EndRun();
  matcher_.MayHold(true);
  Iterate(10, 0);
  EXPECT_EQ(sent_.size(), 42u);
  EXPECT_TRUE(Repeats(sent_.back()));
  Receive();
  EXPECT_TRUE(given_.empty());
}

TEST_F(ChunksTest, WordsThatDifferArePatches) {
  for (uint32_t time = 0; time < 6; ++time) Iterate(10, time);
  EXPECT_EQ(matcher_.patches().size(), 10u);
  EXPECT_EQ(sent_.size(), 24u);
  Receive();
  EXPECT_TRUE(given_.empty());
}

TEST_F(ChunksTest, ARunWhoseWordsHaveChangedForGoodIsLearntAnew) {
  for (uint32_t time = 0; time < 3; ++time) Iterate(10, 5);
  ASSERT_EQ(matcher_.patches().size(), 0u);
  const auto other = [&] {
    for (uint16_t i = 0; i < 10; ++i)
      Send(Message(static_cast<uint16_t>(7 + i), std::vector<uint32_t>(10, 99)), i == 9);
  };
  for (uint32_t time = 0; time < 4; ++time) other();
  sent_.clear();
  given_.clear();
  other();
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(matcher_.patches().size(), 0u);
  Receive();
}

// A run of ten messages that is cut before each of `cuts`.
class CutChunksTest : public ChunksTest {
 protected:
  void IterateCut(std::vector<uint32_t> cuts) {
    for (uint32_t i = 0; i < 10; ++i) {
      if (std::find(cuts.begin(), cuts.end(), i) != cuts.end()) SendCut(Message(1, {}));
      Send(Message(static_cast<uint16_t>(7 + i), {i}), i == 9);
    }
  }
};

TEST_F(CutChunksTest, ARunThatIsCutAtOtherPlacesFirstIsOneMessageTheThirdTime) {
  IterateCut({4, 5, 6, 7, 8, 9});
  IterateCut({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  sent_.clear();
  given_.clear();
  IterateCut({0});
  EXPECT_EQ(sent_.size(), 2u) << "the cut, and a repeat";
  Receive();
  EXPECT_TRUE(given_.empty());
}

TEST_F(CutChunksTest, ARunThatIsCutAtTheSamePlacesIsRepeatedInParts) {
  for (int time = 0; time < 8; ++time) {
    sent_.clear();
    given_.clear();
    IterateCut({0, 5});
  }
  EXPECT_EQ(sent_.size(), 4u) << "two cuts and two repeats";
}

// Iterations of 40 messages without a wait: their places in runs of the most messages drift.
TEST_F(CutChunksTest, ALoopThatNeverWaitsRepeatsFromItsThirdIterationOn) {
  for (int time = 0; time < 6; ++time) {
    sent_.clear();
    SendCut(Message(1, {}));
    for (uint16_t i = 0; i < 40; ++i) Send(Message(static_cast<uint16_t>(7 + i), {i}));
    EXPECT_EQ(sent_.size(), time < 2 ? 41u : 2u) << time;
  }
}

TEST_F(CutChunksTest, HeldMessagesGoBeforeACut) {
  for (uint32_t time = 0; time < 3; ++time) Iterate(10, 5);
  Send(Message(7, {0, 1, 2, 3, 4, 5, 6, 7, 8, 5}));
  EXPECT_TRUE(matcher_.holds());
  SendCut(Message(99, {1}));
  EXPECT_TRUE(matcher_.in_run());
  EXPECT_FALSE(matcher_.holds());
  Receive();
  EXPECT_TRUE(given_.empty());
}

TEST_F(ChunksTest, HeldMessagesGoWhereTheRunTurnsOff) {
  for (uint32_t time = 0; time < 3; ++time) Iterate(10, 5);
  sent_.clear();
  given_.clear();
  for (uint32_t i = 0; i < 4; ++i)
    Send(Message(static_cast<uint16_t>(7 + i), {i, 1, 2, 3, 4, 5, 6, 7, 8, 5}));
  EXPECT_TRUE(matcher_.holds());
  EXPECT_TRUE(sent_.empty());
  Send(Message(99, {1}));
  EXPECT_FALSE(matcher_.holds());
  EXPECT_EQ(sent_.size(), 5u);
  Receive();
}

TEST_F(ChunksTest, HeldMessagesGoBeforeOneThatGoesAlone) {
  for (uint32_t time = 0; time < 3; ++time) Iterate(10, 5);
  Send(Message(7, {0, 1, 2, 3, 4, 5, 6, 7, 8, 5}));
  SendAlone(Message(99, {1}));
  Receive();
  EXPECT_TRUE(given_.empty());
}

// The client still holds other runs, which begin like another chunk.
TEST_F(ChunksTest, RunsThatDifferAgainAndAgainAreNotHeld) {
  const auto other = [&] {
    for (uint16_t i = 0; i < 10; ++i) Send(Message(static_cast<uint16_t>(90 - i), {i}), i == 9);
  };
  for (uint32_t time = 0; time < 3; ++time) {
    Iterate(10, 5);
    other();
  }
  uint32_t held = 0;
  constexpr uint16_t kTimes = 200;
  for (uint16_t time = 0; time < kTimes; ++time) {
    for (uint32_t i = 0; i < 9; ++i)
      Send(Message(static_cast<uint16_t>(7 + i), {i, 1, 2, 3, 4, 5, 6, 7, 8, 5}));
    held += matcher_.holds();
    Send(Message(static_cast<uint16_t>(1'000 + time), {1}));
    Send(Message(1, {}), true);
    const uint64_t before = matcher_.counts().repeated;
    other();
    ASSERT_EQ(matcher_.counts().repeated, before + 10);
  }
  EXPECT_GE(held, HoldTrust::kMost / 10);
  EXPECT_LE(held, HoldTrust::kMost / 10 + 4);
  for (uint32_t time = 0; time <= HoldTrust::kLongestRest; ++time) {
    sent_.clear();
    Iterate(10, 5);
  }
  EXPECT_EQ(sent_.size(), 1u) << "it repeats again";
}

// The chunk is made anew meanwhile, as its words have changed for good.
TEST_F(ChunksTest, RunsWhoseWordsDifferEachTimeAreNotHeld) {
  uint32_t held = 0;
  for (uint32_t time = 0; time < 200; ++time) {
    for (uint16_t i = 0; i < 10; ++i) {
      held += i == 9 && matcher_.holds();
      Send(Message(static_cast<uint16_t>(7 + i), std::vector<uint32_t>(10, time)), i == 9);
    }
  }
  EXPECT_GE(held, HoldTrust::kMost / 10);
  EXPECT_LE(held, HoldTrust::kMost / 10 + 4);
  Receive();
  EXPECT_TRUE(given_.empty());
}

TEST_F(ChunksTest, InTheMiddleOfAChunkNothingIsTaken) {
  for (uint32_t time = 0; time < 2; ++time) Iterate(10, 5);
  Receive();
  Iterate(10, 5);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(receiver_.midway(), nullptr);
  for (uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(sent_.size(), 1u);
    EXPECT_FALSE(receiver_.PeekUntrusted(0, 0).empty());
    EXPECT_FALSE(receiver_.NextUntrusted(0, 0).empty());
    EXPECT_EQ(receiver_.midway() != nullptr, i != 9);
  }
  EXPECT_TRUE(sent_.empty());
  EXPECT_FALSE(receiver_.Pending());
}

TEST_F(ChunksTest, WithoutRoomNoChunkIsMadeUntilAllAreForgotten) {
  std::vector<std::byte> small(1024);
  ChunkMatcher matcher(small);
  const auto run = [&](uint16_t op) {
    ChunkMatcher::Verdict verdict{};
    for (uint16_t i = 0; i < 10; ++i) {
      const Bytes message = Message(op, {1, 2, 3, 4, 5, 6, 7, 8});
      std::memcpy(matcher.Room().data(), message.data(), message.size());
      verdict = matcher.OnMessage(message.size(), i == 9);
    }
    return verdict;
  };
  for (uint16_t op = 1; op < 4; ++op) {
    for (uint32_t time = 0; time < 3; ++time) run(op);
  }
  EXPECT_TRUE(matcher.full());
  EXPECT_EQ(matcher.chunks(), 1u);
  for (uint32_t time = 0; time < 2; ++time) EXPECT_EQ(run(1), ChunkMatcher::Verdict::kRepeat);
  EXPECT_EQ(matcher.repeated_messages(), 10u);
  matcher.Forget();
  EXPECT_EQ(run(1), ChunkMatcher::Verdict::kSend) << "what came after a chunk is forgotten, too";
  for (uint32_t time = 0; time < 2; ++time) EXPECT_EQ(run(3), ChunkMatcher::Verdict::kSend);
  EXPECT_EQ(run(3), ChunkMatcher::Verdict::kRepeat);
}

// --- untrusted -----------------------------------------------------------------------------------

TEST_F(ChunksTest, ARepeatThatMakesNoSenseBreaksTheReceiver) {
  for (uint32_t time = 0; time < 3; ++time) Iterate(10, time);
  ASSERT_EQ(sent_.size(), 21u);
  const Bytes good = sent_.back();
  ASSERT_TRUE(Repeats(good));
  const auto broken = [&](auto change) {
    std::deque<Bytes> messages = {good};
    change(messages.front());
    ChunkReceiver receiver(std::make_unique<Queue>(&messages), area_);
    return receiver.NextUntrusted(0, 0).empty() && receiver.broken();
  };
  const auto word = [](Bytes& bytes, size_t index, uint32_t value) {
    std::memcpy(bytes.data() + sizeof(MessageHeader) + index * 4, &value, 4);
  };
  EXPECT_FALSE(broken([](Bytes&) {}));
  EXPECT_TRUE(broken([](Bytes& bytes) { bytes.resize(sizeof(MessageHeader) + 8); })) << "short";
  EXPECT_TRUE(broken([](Bytes& bytes) { bytes.resize(bytes.size() - 8); })) << "a patch is missing";
  EXPECT_TRUE(broken([&](Bytes& bytes) { word(bytes, 0, limits::kChunkAreaBytes); })) << "outside";
  EXPECT_TRUE(broken([&](Bytes& bytes) { word(bytes, 0, 0xfffffff8); })) << "outside";
  EXPECT_TRUE(broken([&](Bytes& bytes) { word(bytes, 0, 4); })) << "not aligned";
  EXPECT_TRUE(broken([&](Bytes& bytes) { word(bytes, 1, 0); })) << "empty";
  EXPECT_TRUE(broken([&](Bytes& bytes) { word(bytes, 1, limits::kChunkBytesMax + 8); })) << "long";
  EXPECT_TRUE(broken([&](Bytes& bytes) { word(bytes, 1, 16); })) << "less than a message";
  EXPECT_TRUE(broken([&](Bytes& bytes) { word(bytes, 2, 0x20000001); })) << "product overflows";
  EXPECT_TRUE(broken([&](Bytes& bytes) { word(bytes, 4, 1 << 20); })) << "patches something else";
  EXPECT_TRUE(broken([&](Bytes& bytes) {
    word(bytes, 4, 0);
    word(bytes, 5, 8);
  })) << "a message is shorter than its header";
  EXPECT_TRUE(broken([&](Bytes& bytes) {
    word(bytes, 4, 1);
    word(bytes, 5, uint32_t{kRepeatsChunk} << 16 | 7);
  })) << "a chunk in a chunk";
  EXPECT_TRUE(broken([&](Bytes& bytes) {
    word(bytes, 4, 1);
    word(bytes, 5, uint32_t{kWantsReply} << 16 | 7);
  })) << "nobody waits for the reply of a message in a chunk";
}

// --- whatever a program repeats ------------------------------------------------------------------

// Programs of a few bodies, each a list of messages, some of whose words vary; bodies are repeated,
// left in the middle, changed; runs end at random places; the worker takes messages when it likes.
class RandomChunksTest : public ChunksTest {
 protected:
  struct Step {
    uint16_t op;
    std::vector<uint32_t> words;
    uint32_t varying;  // words that differ each time
    bool ends_run;
    bool alone;
    uint32_t cut;  // before it, one time in so many; 0: never
  };
  static constexpr uint16_t kCutOp = 99;

  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  std::vector<Step> Body() {
    std::vector<Step> body(1 + Below(120));
    for (Step& step : body) {
      step = {static_cast<uint16_t>(Below(6)),
              std::vector<uint32_t>(1 + Below(40)),
              0,
              Below(20) == 0,
              Below(60) == 0,
              Below(30) == 0 ? 1 + Below(3) : 0};
      for (uint32_t& word : step.words) word = Below(4);
      if (Below(3) == 0) step.varying = Below(4);
    }
    return body;
  }
  void Run(const std::vector<Step>& body) {
    const size_t stop = Below(8) == 0 ? Below(static_cast<uint32_t>(body.size())) : body.size();
    for (size_t i = 0; i < stop; ++i) {
      std::vector<uint32_t> words = body[i].words;
      for (uint32_t v = 0; v < body[i].varying && v < words.size(); ++v) words[v] = Below(1 << 20);
      const Bytes message = Message(body[i].op, words);
      if (body[i].cut != 0 && Below(body[i].cut) == 0) SendCut(Message(kCutOp, {}));
      if (body[i].alone) {
        SendAlone(message);
      } else {
        Send(message, body[i].ends_run);
      }
      if (Below(500) == 0) EndRun();
      if (Below(40) == 0) {
        const std::span<const std::byte> taken = receiver_.NextUntrusted(0, 0);
        if (!taken.empty()) {
          ASSERT_EQ(Bytes(taken.begin(), taken.end()), given_.front());
          given_.pop_front();
        }
      }
    }
    if (Below(6) == 0) {
      EndRun();
      Receive();
      ASSERT_TRUE(given_.empty());
      if (matcher_.full()) matcher_.Forget();
    }
  }

  std::mt19937_64 random_{harness::Seed()};
};

TEST_F(RandomChunksTest, EveryMessageArrivesOnceInOrderAsItWas) {
  for (uint32_t program = 0; program < 200; ++program) {
    std::vector<std::vector<Step>> bodies(1 + Below(4));
    for (std::vector<Step>& body : bodies) body = Body();
    for (uint32_t turn = 0; turn < 60; ++turn) {
      ASSERT_NO_FATAL_FAILURE(Run(bodies[Below(static_cast<uint32_t>(bodies.size()))]));
    }
    if (Below(3) == 0) bodies.back() = Body();
  }
  EndRun();
  Receive();
  EXPECT_TRUE(given_.empty());
  EXPECT_GT(matcher_.counts().repeated, matcher_.counts().messages / 4)
      << "programs that repeat are sent in chunks";
}

}  // namespace
}  // namespace ipc
