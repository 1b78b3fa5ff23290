#include "replay/template.h"

#include <gtest/gtest.h>

#include "tests/replay/letters.h"
#include "tests/replay/replayed_run.h"

namespace replay {
namespace {

using testing::LetterArguments;
using testing::Letters;
using testing::ReplayedRun;

constexpr uint64_t kPersistent = ipc::limits::kSlotBase;

class TemplateTest : public ::testing::Test {
 protected:
  void Learn(std::string_view text, int times = 1, const LetterArguments& arguments = {}) {
    for (int i = 0; i < times; ++i) known_.Learn(Letters::Iteration(text, arguments));
  }
  // Operations of the iteration that would be replayed; learns it, too.
  size_t Replayed(std::string_view text, const LetterArguments& arguments = {}) {
    ReplayedRun run(&known_);
    EXPECT_TRUE(run.Iteration(Letters::Iteration(text, arguments)));
    return run.replayed();
  }
  const Body& First(char letter) {
    return *known_.body(known_.Next(Template::kBegin, Letters::Key(letter)));
  }

  Letters letters_;
  Template known_{&letters_.callees()};
};

TEST_F(TemplateTest, IsReadyAtTheThirdOccurrence) {
  Learn("abcd", 2);
  EXPECT_FALSE(known_.IsReady(known_.Next(Template::kBegin, Letters::Key('a'))));
  Learn("abcd");
  EXPECT_TRUE(known_.IsReady(known_.Next(Template::kBegin, Letters::Key('a'))));
  EXPECT_EQ(known_.bodies(), 1u);
  EXPECT_EQ(Replayed("abcd"), 4u);
}

TEST_F(TemplateTest, WordsThatDifferBecomePatches) {
  LetterArguments arguments;
  Learn("ab", 1, arguments);
  const BodyId before = First('a').id;
  arguments.number = 7;
  arguments.shape.grid[0] = 2;
  arguments.address += 512;
  Learn("ab", 1, arguments);
  const Body& body = First('a');
  EXPECT_NE(body.id, before);
  ASSERT_EQ(body.patches.size(), 6u);  // of two operations
  EXPECT_EQ(body.patches[0].op, 0u);
  EXPECT_EQ(body.patches[0].word.offset, 0u);
  EXPECT_EQ(body.patches[1].word.offset, offsetof(LetterArguments, address));
  EXPECT_EQ(body.patches[1].word.bytes, 8u);
  EXPECT_EQ(body.patches[2].word.offset, offsetof(LetterArguments, number));
  EXPECT_EQ(body.patches[2].word.bytes, 4u);
  EXPECT_EQ(body.patches[3].op, 1u);
  Learn("ab", 2, arguments);
  EXPECT_EQ(First('a').patches.size(), 6u);
  arguments.number = 8;
  EXPECT_EQ(Replayed("ab", arguments), 2u);
  arguments.other = 1;
  EXPECT_EQ(Replayed("ab", arguments), 0u);
  EXPECT_EQ(First('a').patches.size(), 8u);
}

TEST_F(TemplateTest, ABranchIsTwoBodiesBetweenTheSameTwo) {
  Learn("abcdxijkl");
  Learn("abcdyijkl");
  EXPECT_EQ(known_.bodies(), 4u);  // abcd, x, y, ijkl
  Learn("abcdxijkl", 2);
  Learn("abcdyijkl", 2);
  EXPECT_EQ(known_.bodies(), 4u);
  EXPECT_EQ(Replayed("abcdxijkl"), 9u);
  EXPECT_EQ(Replayed("abcdyijkl"), 9u);
}

TEST_F(TemplateTest, LeftOutOperationsAreNoNewBody) {
  Learn("abxyijkl");
  Learn("abijkl");
  EXPECT_EQ(known_.bodies(), 3u);  // ab, xy, ijkl
  Learn("abijkl");
  EXPECT_EQ(Replayed("abijkl"), 6u);
}

TEST_F(TemplateTest, AnEarlyEndIsABodyOfItsOwn) {
  Learn("abcdef", 3);
  Learn("abc", 1);
  EXPECT_EQ(known_.bodies(), 2u);
  EXPECT_EQ(Replayed("abc"), 3u);
  EXPECT_EQ(Replayed("abcdef"), 6u);
}

TEST_F(TemplateTest, WhatFollowsABodyFollowsItsSecondPart) {
  Learn("abcdef|gh");
  Learn("abc");
  const Template::Place first = known_.Next(Template::kBegin, Letters::Key('a'));
  EXPECT_EQ(known_.Next(first, Letters::Key('g', true)), Template::kNowhere);
  const Template::Place second = known_.Next(first, Letters::Key('d'));
  ASSERT_NE(second, Template::kNowhere);
  EXPECT_NE(known_.Next(second, Letters::Key('g', true)), Template::kNowhere);
}

TEST_F(TemplateTest, ALoopWithMoreRoundsEachTimeIsReplayedAtAnyNumber) {
  std::string rounds = "xy";
  for (int i = 0; i < 8; ++i, rounds += "xy") Learn("abcd" + rounds + "ijkl");
  for (int i = 0; i < 20; ++i) rounds += "xy";
  EXPECT_EQ(Replayed("abcd" + rounds + "ijkl"), rounds.size() + 8);
  EXPECT_LE(known_.bodies(), 5u);
}

TEST_F(TemplateTest, NoBodyCrossesAWait) {
  Learn("ab|cd", 3);
  EXPECT_EQ(known_.bodies(), 2u);
  EXPECT_EQ(First('a').ops.size(), 2u);
  EXPECT_EQ(Replayed("ab|cd"), 4u);
}

TEST_F(TemplateTest, FewOperationsAtTheEndSplitNoBody) {
  Learn("abcxyz");
  Learn("dexyz");
  EXPECT_EQ(known_.bodies(), 2u);
  Learn("fwxyz");
  EXPECT_EQ(known_.bodies(), 3u);
}

TEST_F(TemplateTest, ALongRowIsCut) {
  Template short_bodies(&letters_.callees(), {.body_ops = 4});
  for (int i = 0; i < 3; ++i) short_bodies.Learn(Letters::Iteration("abcdefghij"));
  EXPECT_EQ(short_bodies.bodies(), 3u);
  ReplayedRun run(&short_bodies);
  EXPECT_TRUE(run.Iteration(Letters::Iteration("abcdefghij")));
  EXPECT_EQ(run.messages(), 3u);
}

TEST_F(TemplateTest, WhatWasUsedLongestAgoGoes) {
  Template few(&letters_.callees(), {.bodies = 3});
  for (const char* const text : {"abc", "defg", "hi", "abc"}) few.Learn(Letters::Iteration(text));
  few.Learn(Letters::Iteration("klm"));
  EXPECT_EQ(few.bodies(), 3u);
  EXPECT_NE(few.Next(Template::kBegin, Letters::Key('a')), Template::kNowhere);
  EXPECT_EQ(few.Next(Template::kBegin, Letters::Key('d')), Template::kNowhere);
  EXPECT_NE(few.Next(Template::kBegin, Letters::Key('k')), Template::kNowhere);
}

TEST_F(TemplateTest, IsBoundedByBytesAndByOneIteration) {
  Template small(&letters_.callees(), {.bytes = 1000});
  small.Learn(Letters::Iteration("abcdefghijklmnopqrstuvwxyz"));
  EXPECT_EQ(small.bodies(), 0u);
  small.Learn(Letters::Iteration("abc"));
  EXPECT_EQ(small.bodies(), 1u);
  EXPECT_LE(small.bytes(), 1000u);
  Template few(&letters_.callees(), {.bodies = 3});
  few.Learn(Letters::Iteration("|a|b|c|d|e|f|g|h|i|j"));
  EXPECT_EQ(few.bodies(), 3u);
  EXPECT_NE(few.Next(Template::kBegin, Letters::Key('a', true)), Template::kNowhere);
}

TEST_F(TemplateTest, AModulesEndDropsItsBodiesAndWhatIsBehindThem) {
  Learn("ab|cd|ef", 3);
  const Invalidated lost = known_.Invalidate({.kind = Loss::Kind::kModule, .module = {'c'}});
  EXPECT_EQ(lost.dropped.size(), 2u);
  EXPECT_FALSE(lost.instances_lost);
  EXPECT_EQ(known_.bodies(), 1u);
  EXPECT_EQ(Replayed("ab|cd|ef"), 2u);
}

TEST_F(TemplateTest, FreedMemoryDropsWhoseFixedWordsPointThere) {
  LetterArguments arguments;
  arguments.address = kPersistent + 4096;
  Learn("ab", 3, arguments);
  const auto freed = [&](uint64_t begin, uint64_t bytes) {
    const Loss loss = {.kind = Loss::Kind::kMemory, .begin = begin, .bytes = bytes};
    return known_.Invalidate(loss).dropped.size();
  };
  EXPECT_EQ(freed(kPersistent, 4096), 0u);
  EXPECT_EQ(freed(kPersistent + 4097, 4096), 0u);
  EXPECT_EQ(freed(kPersistent + 4096 - 512, 513), 1u);
  EXPECT_EQ(known_.bodies(), 0u);
}

TEST_F(TemplateTest, FreedMemoryKeepsWhatIsGivenByEachCall) {
  LetterArguments arguments;
  Learn("a", 1, arguments);
  arguments.address += 512;
  Learn("a", 2, arguments);
  const Loss loss = {
      .kind = Loss::Kind::kMemory, .begin = ipc::limits::kSlotBase, .bytes = 1u << 20};
  EXPECT_EQ(known_.Invalidate(loss).dropped.size(), 0u);
}

TEST_F(TemplateTest, NamesThatEndDropTheirBodies) {
  Callees* const callees = letters_.mutable_callees();
  const uint32_t record = *callees->Intern(CalleeOf(OpKind::kEventRecord));
  const uint32_t graph = *callees->Intern(CalleeOf(OpKind::kGraphLaunch));
  Callee gemm;
  gemm.kind = OpKind::kLibraryCall;
  gemm.name = "gemm";
  gemm.argument_bytes = 8;
  const uint32_t library = *callees->Intern(gemm);
  const auto bodies_after = [&](uint32_t callee, const Loss& loss) {
    Template known(&letters_.callees());
    OpStream ops;
    const uint32_t arguments[] = {9, 0};
    ops.Add({{callee, 5, false}, std::as_bytes(std::span(arguments))});
    known.Learn(ops);
    known.Invalidate(loss);
    return known.bodies();
  };
  EXPECT_EQ(bodies_after(record, {.kind = Loss::Kind::kEvent, .name = 9}), 0u);
  EXPECT_EQ(bodies_after(record, {.kind = Loss::Kind::kEvent, .name = 5}), 1u);
  EXPECT_EQ(bodies_after(record, {.kind = Loss::Kind::kGraph, .name = 9}), 1u);
  EXPECT_EQ(bodies_after(record, {.kind = Loss::Kind::kStream, .name = 5}), 0u);
  EXPECT_EQ(bodies_after(record, {.kind = Loss::Kind::kStream, .name = 9}), 1u);
  EXPECT_EQ(bodies_after(graph, {.kind = Loss::Kind::kGraph, .name = 9}), 0u);
  EXPECT_EQ(bodies_after(library, {.kind = Loss::Kind::kLibrary}), 0u);
  EXPECT_EQ(bodies_after(record, {.kind = Loss::Kind::kLibrary}), 1u);
}

TEST_F(TemplateTest, AnotherWorkerKeepsTheBodies) {
  Learn("ab", 3);
  const Invalidated lost = known_.Invalidate({.kind = Loss::Kind::kWorker});
  EXPECT_TRUE(lost.instances_lost);
  EXPECT_TRUE(lost.dropped.empty());
  EXPECT_EQ(Replayed("ab"), 2u);
}

}  // namespace
}  // namespace replay
