// The recorded streams of tests/data/op_streams, replayed iteration by iteration as the programs
// marked them. The streams have hashes of what is done and how much, and no arguments: a hash of
// sizes stands for the grid.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/replay/replayed_run.h"
#include "tests/shim/iterations/quality.h"

namespace replay {
namespace {

using shim::iterations::RecordedOp;
using testing::ReplayedRun;

// Of one recorded operation.
Callee CalleeOfRecord(const RecordedOp& recorded) {
  return KernelCallee({recorded.op.identity}, "recorded", {}, 0);
}

struct Share {
  size_t ops = 0, iterations = 0, replayed = 0, messages = 0, bodies = 0;
};

// Counts the second half of the stream, when everything has come before.
void Replay(const std::vector<RecordedOp>& ops, Share* share) {
  Callees callees;
  Template known(&callees);
  ReplayedRun run(&known);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].marked) {
      ASSERT_TRUE(run.End());
      share->iterations += i >= ops.size() / 2;
    }
    if (i == ops.size() / 2) run.ResetCounts();
    LaunchShape shape;
    shape.grid[0] = ops[i].op.shape;
    const std::optional<uint32_t> callee = callees.Intern(CalleeOfRecord(ops[i]));
    ASSERT_TRUE(callee.has_value());
    run.Op({{*callee, 0, ops[i].op.synced}, std::as_bytes(std::span(&shape, 1))});
  }
  ASSERT_TRUE(run.End());
  share->ops = ops.size() - ops.size() / 2;
  share->replayed = run.replayed();
  share->messages = run.messages();
  share->bodies = known.bodies();
}

TEST(RecordedStreamsTest, EveryStreamIsReplayedExactlyAndMostOfItFromTheTemplate) {
  size_t repeating = 0;
  for (const iterations_test::StreamName& stream : iterations_test::AllStreams()) {
    Share share;
    Replay(iterations_test::ReadStream(stream.name), &share);
    if (HasFatalFailure()) FAIL() << stream.name;
    std::printf("%-36s %7zu operations, %7zu replayed by %6zu messages, %3zu bodies\n",
                stream.name.c_str(), share.ops, share.replayed, share.messages, share.bodies);
    // One program goes on without marks, as one long iteration.
    if (share.iterations > 1) {
      EXPECT_GE(share.replayed * 100, share.ops * 95) << stream.name;
      ++repeating;
    }
  }
  EXPECT_GE(repeating, 36u);
}

}  // namespace
}  // namespace replay
