// Which stream is in which capture, and what calls about it are told.
#include "graphs/capture.h"

#include <atomic>
#include <thread>

#include "tests/graphs/fixture.h"

namespace graphs_test {
namespace {

using graphs::CaptureMode;
using graphs::CaptureStream;
using Captures = graphs::Captures<Use>;
using Answer = std::optional<Refusal>;

constexpr CaptureStream kLegacy = {1, 1, true, true};
constexpr CaptureStream kFirst = {2, 1, false, true}, kSecond = {3, 1, false, true};
constexpr CaptureStream kApart = {4, 1, false, false};  // not blocking
constexpr CaptureStream kLegacyElsewhere = {5, 2, true, true};
constexpr uint64_t kThread = 11;

class CaptureTest : public ::testing::Test {
 protected:
  Refusal Begin(const CaptureStream& stream, CaptureMode mode = CaptureMode::kGlobal) {
    return captures_.Begin(stream, {Graph::Create(), false, {}, mode, kThread});
  }
  Refusal End(const CaptureStream& stream, uint64_t thread = kThread) {
    graph_ = nullptr;
    return captures_.End(stream, thread, &graph_);
  }
  Answer Put(const CaptureStream& stream, const std::string& label) {
    return captures_.Put(stream, {label, nullptr});
  }
  Captures::Recording Record(const CaptureStream& stream) {
    Captures::Recording recording;
    EXPECT_EQ(captures_.Record(stream, &recording), Answer(Refusal::kNone));
    return recording;
  }
  Answer Wait(const CaptureStream& stream, const Captures::Recording& recording) {
    return captures_.Wait(stream, recording, true);
  }
  // Labels of a node's dependencies, by the node's label.
  std::string Before(const std::string& label) {
    for (const std::shared_ptr<Node>& node : graph_->nodes()) {
      if (node->content.label == label) return Labels(node->dependencies());
    }
    return "no such node";
  }

  std::atomic<int> streams_{0};
  Captures captures_{&streams_};
  std::shared_ptr<Graph> graph_;
};

TEST_F(CaptureTest, WorkOfAStreamIsAChain) {
  EXPECT_EQ(Put(kFirst, "a"), std::nullopt);  // work, as ever
  ASSERT_EQ(Begin(kFirst), Refusal::kNone);
  EXPECT_EQ(streams_, 1);
  EXPECT_EQ(Put(kFirst, "a"), Answer(Refusal::kNone));
  EXPECT_EQ(Put(kFirst, "b"), Answer(Refusal::kNone));
  EXPECT_EQ(Put(kSecond, "c"), std::nullopt);
  ASSERT_EQ(End(kFirst), Refusal::kNone);
  EXPECT_EQ(streams_, 0);
  ASSERT_EQ(graph_->nodes().size(), 2u);
  EXPECT_EQ(Before("a"), "");
  EXPECT_EQ(Before("b"), "a");
  EXPECT_EQ(End(kFirst), Refusal::kNotCapturing);
}

TEST_F(CaptureTest, StreamsForkAndJoinByEvents) {
  ASSERT_EQ(Begin(kFirst), Refusal::kNone);
  Put(kFirst, "a");
  const Captures::Recording fork = Record(kFirst);
  Put(kFirst, "b");
  EXPECT_EQ(Wait(kSecond, fork), Answer(Refusal::kNone));
  EXPECT_TRUE(captures_.Has(kSecond));
  EXPECT_EQ(streams_, 2);
  Put(kSecond, "c");
  EXPECT_EQ(Wait(kFirst, Record(kSecond)), Answer(Refusal::kNone));
  Put(kFirst, "d");
  EXPECT_EQ(End(kSecond), Refusal::kOtherOrigin);
  ASSERT_EQ(End(kFirst), Refusal::kNone);
  EXPECT_FALSE(captures_.Has(kSecond));
  EXPECT_EQ(Before("c"), "a");
  EXPECT_EQ(Before("d"), "bc");
}

TEST_F(CaptureTest, WhatIsNotJoinedBackFailsTheCaptureAndItsGraph) {
  ASSERT_EQ(Begin(kFirst), Refusal::kNone);
  Put(kFirst, "a");
  Wait(kSecond, Record(kFirst));
  Put(kSecond, "b");
  const uint64_t name = captures_.Describe(kFirst)->graph->name();
  EXPECT_EQ(Use::known.count(name), 1u);
  EXPECT_EQ(End(kFirst), Refusal::kUnjoined);
  EXPECT_EQ(graph_, nullptr);
  EXPECT_EQ(Use::known.count(name), 0u);
  EXPECT_FALSE(captures_.Has(kFirst));
  EXPECT_FALSE(captures_.Has(kSecond));
}

TEST_F(CaptureTest, AnErrorInvalidatesUntilTheEnd) {
  ASSERT_EQ(Begin(kFirst), Refusal::kNone);
  EXPECT_EQ(captures_.Refuse(kSecond, true), std::nullopt);
  EXPECT_FALSE(captures_.Describe(kFirst)->invalidated);
  EXPECT_EQ(captures_.Refuse(kFirst, false), Answer(Refusal::kNotCapturable));
  EXPECT_TRUE(captures_.Describe(kFirst)->invalidated);
  EXPECT_EQ(Put(kFirst, "a"), Answer(Refusal::kInvalidated));
  EXPECT_EQ(captures_.SetTail(kFirst, {}, true), Refusal::kInvalidated);
  EXPECT_EQ(Wait(kSecond, Record(kFirst)), Answer(Refusal::kInvalidated));
  EXPECT_EQ(Begin(kFirst), Refusal::kCapturingAlready);
  EXPECT_EQ(End(kFirst), Refusal::kInvalidated);
  EXPECT_EQ(Begin(kFirst), Refusal::kNone);
  EXPECT_EQ(End(kFirst), Refusal::kNone);
}

TEST_F(CaptureTest, EventsOfElsewhere) {
  EXPECT_EQ(captures_.Wait(kFirst, {}, true), std::nullopt);
  ASSERT_EQ(Begin(kFirst), Refusal::kNone);
  EXPECT_EQ(captures_.Wait(kFirst, {}, false), Answer(Refusal::kNone));
  const Captures::Recording recording = Record(kFirst);
  ASSERT_EQ(Begin(kSecond), Refusal::kNone);
  EXPECT_EQ(Wait(kSecond, recording), Answer(Refusal::kOtherCapture));
  EXPECT_FALSE(captures_.Describe(kSecond)->invalidated);
  EXPECT_EQ(captures_.Wait(kSecond, {}, true), Answer(Refusal::kIsolation));
  EXPECT_EQ(End(kSecond), Refusal::kInvalidated);
  EXPECT_EQ(End(kFirst), Refusal::kNone);
  EXPECT_EQ(Wait(kSecond, recording), Answer(Refusal::kCaptureEnded));
  ASSERT_EQ(Begin(kFirst), Refusal::kNone);  // not the one that the event knows
  EXPECT_EQ(Wait(kFirst, recording), Answer(Refusal::kOtherCapture));
  EXPECT_EQ(Wait(kSecond, recording), Answer(Refusal::kCaptureEnded));
  EXPECT_EQ(End(kFirst), Refusal::kNone);
}

TEST_F(CaptureTest, TheLegacyStreamIsNeitherCapturedNorMayItWait) {
  EXPECT_EQ(Begin(kLegacy), Refusal::kLegacyStream);
  ASSERT_EQ(Begin(kApart), Refusal::kNone);
  EXPECT_EQ(Put(kLegacy, "w"), std::nullopt);  // it waits for blocking streams alone
  EXPECT_EQ(Wait(kLegacy, Record(kApart)), Answer(Refusal::kLegacyStream));
  ASSERT_EQ(Wait(kFirst, Record(kApart)), Answer(Refusal::kNone));
  EXPECT_EQ(Put(kLegacy, "w"), Answer(Refusal::kImplicit));
  EXPECT_EQ(captures_.Refuse(kLegacy, true), Answer(Refusal::kImplicit));
  EXPECT_EQ(captures_.Refuse(kLegacy, false), std::nullopt);
  Captures::Recording recording;
  EXPECT_EQ(captures_.Record(kLegacy, &recording), Answer(Refusal::kImplicit));
  EXPECT_EQ(Put(kLegacyElsewhere, "w"), std::nullopt);  // of another group
  EXPECT_EQ(End(kApart), Refusal::kNone);
  EXPECT_EQ(Put(kLegacy, "w"), std::nullopt);
}

TEST_F(CaptureTest, ARelaxedCaptureIsEndedByAnyThread) {
  for (const CaptureMode mode : {CaptureMode::kGlobal, CaptureMode::kThreadLocal}) {
    ASSERT_EQ(Begin(kFirst, mode), Refusal::kNone);
    EXPECT_EQ(End(kFirst, kThread + 1), Refusal::kWrongThread);
    EXPECT_TRUE(captures_.Has(kFirst));
    EXPECT_EQ(End(kFirst), Refusal::kNone);
  }
  ASSERT_EQ(Begin(kFirst, CaptureMode::kRelaxed), Refusal::kNone);
  EXPECT_EQ(End(kFirst, kThread + 1), Refusal::kNone);
}

TEST_F(CaptureTest, ACaptureGoesOnInAGivenGraph) {
  const std::shared_ptr<Graph> given = Graph::Create(), other = Graph::Create();
  Node* const node = Add(*given, "g");
  Node* const foreign = Add(*other, "f");
  EXPECT_EQ(captures_.Begin(kFirst, {given, true, {foreign}, {}, kThread}), Refusal::kForeignNode);
  EXPECT_EQ(captures_.Begin(kFirst, {given, true, {node, node}, {}, kThread}),
            Refusal::kRepeatedDependency);
  ASSERT_EQ(captures_.Begin(kFirst, {given, true, {node}, {}, kThread}), Refusal::kNone);
  Put(kFirst, "a");
  captures_.Invalidate(kFirst);
  EXPECT_EQ(End(kFirst), Refusal::kInvalidated);
  EXPECT_EQ(Use::known.count(given->name()), 1u);  // the program has it still
  graph_ = given;
  EXPECT_EQ(Before("a"), "g");
}

TEST_F(CaptureTest, TheTailIsTheProgramsToChange) {
  EXPECT_EQ(captures_.SetTail(kFirst, {}, true), Refusal::kNotCapturing);
  ASSERT_EQ(Begin(kFirst), Refusal::kNone);
  const std::shared_ptr<Graph> graph = captures_.Describe(kFirst)->graph;
  Node* const extra = Add(*graph, "x");
  const std::shared_ptr<Graph> other = Graph::Create();
  EXPECT_EQ(captures_.SetTail(kFirst, {Add(*other, "f")}, false), Refusal::kForeignNode);
  Put(kFirst, "a");
  EXPECT_EQ(captures_.SetTail(kFirst, {extra, extra}, false), Refusal::kNone);
  Put(kFirst, "b");
  EXPECT_EQ(captures_.SetTail(kFirst, {extra}, true), Refusal::kNone);
  EXPECT_EQ(captures_.Describe(kFirst)->tail.size(), 1u);
  Put(kFirst, "c");
  ASSERT_EQ(End(kFirst), Refusal::kNone);
  EXPECT_EQ(Before("b"), "ax");
  EXPECT_EQ(Before("c"), "x");
}

TEST_F(CaptureTest, ADestroyedNodeIsLeftOut) {
  ASSERT_EQ(Begin(kFirst), Refusal::kNone);
  Put(kFirst, "a");
  const Captures::Recording recording = Record(kFirst);
  const std::shared_ptr<Graph> graph = captures_.Describe(kFirst)->graph;
  const std::shared_ptr<Node> keep = graph->nodes()[0];  // a call of another thread still has it
  graph->Remove(keep.get());
  EXPECT_EQ(Put(kFirst, "b"), Answer(Refusal::kNone));
  EXPECT_EQ(Wait(kSecond, recording), Answer(Refusal::kNone));
  ASSERT_EQ(End(kFirst), Refusal::kNone);
  EXPECT_EQ(Before("b"), "");
}

TEST_F(CaptureTest, AStreamThatGoesTakesItsCaptureAlong) {
  captures_.Abandon(kFirst);
  ASSERT_EQ(Begin(kFirst), Refusal::kNone);
  const Captures::Recording recording = Record(kFirst);
  Wait(kSecond, recording);
  Put(kSecond, "a");
  captures_.Abandon(kSecond);
  EXPECT_EQ(streams_, 0);
  EXPECT_EQ(End(kFirst), Refusal::kNotCapturing);
  EXPECT_EQ(Wait(kFirst, recording), Answer(Refusal::kCaptureEnded));
}

TEST_F(CaptureTest, AStreamThatHasJoinedMayGo) {
  ASSERT_EQ(Begin(kFirst), Refusal::kNone);
  Wait(kSecond, Record(kFirst));
  Put(kSecond, "a");
  Put(kFirst, "b");
  EXPECT_EQ(Wait(kFirst, Record(kSecond)), Answer(Refusal::kNone));
  captures_.Abandon(kSecond);
  EXPECT_EQ(streams_, 1);
  EXPECT_FALSE(captures_.Has(kSecond));
  EXPECT_EQ(Put(kSecond, "c"), std::nullopt);
  Put(kFirst, "d");
  ASSERT_EQ(End(kFirst), Refusal::kNone);
  EXPECT_EQ(streams_, 0);
  EXPECT_EQ(Before("d"), "ba");
}

TEST_F(CaptureTest, ThreadsCaptureInStreamsOfTheirOwn) {
  constexpr uint64_t kThreads = 4, kNodes = 200;
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<Graph>> graphs(kThreads);
  for (uint64_t i = 0; i < kThreads; ++i) graphs[i] = Graph::Create();
  std::atomic<int> wrong{0};
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const CaptureStream stream = {100 + i, 1, false, true};
      Captures::Recording recording;
      std::shared_ptr<Graph> ended;
      wrong += captures_.Begin(stream, {graphs[i], true, {}, {}, i}) != Refusal::kNone;
      wrong += captures_.Record(stream, &recording) != Answer(Refusal::kNone);
      for (uint64_t k = 0; k < kNodes; ++k) {
        wrong += captures_.Wait(stream, recording, true) != Answer(Refusal::kNone);
        wrong += !captures_.WouldWait(kLegacy) || captures_.WouldWait(kLegacyElsewhere);
        wrong += captures_.Describe(stream)->graph != graphs[i];
      }
      wrong += captures_.End(stream, i, &ended) != Refusal::kNone;
      wrong += ended != graphs[i];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(streams_, 0);
}

}  // namespace
}  // namespace graphs_test
