// Virtual time of work that comes bit by bit: copies, the host's waits, and equality with the model
// of whole graphs.
#include "scheduler/streams/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "scheduler/streams/nimble.h"
#include "tests/harness/seed.h"
#include "tests/scheduler/streams/graphs.h"

namespace scheduler::streams {
namespace {

using Moment = Timeline::Moment;

TimedWork Kernel(const Cost& cost) { return {TimedWork::Kind::kKernel, cost}; }
TimedWork ToDevice(double ns) { return {TimedWork::Kind::kCopyToDevice, {ns}}; }
TimedWork ToHost(double ns) { return {TimedWork::Kind::kCopyToHost, {ns}}; }

TEST(TimelineTest, WorkOfOneStreamFollowsItself) {
  Timeline timeline(0);
  const Moment first = timeline.Add(Kernel({10, 2, 1}), nullptr);
  const Moment second = timeline.Add(Kernel({20, 3, 1}), first);
  EXPECT_DOUBLE_EQ(timeline.now_ns(), 0) << "calls take no time of the host";
  EXPECT_DOUBLE_EQ(timeline.Wait(second), 35);
  EXPECT_DOUBLE_EQ(timeline.Wait(first), 12);
  EXPECT_DOUBLE_EQ(timeline.now_ns(), 35);
}

TEST(TimelineTest, NothingBeginsBeforeTheHostHasComeToIt) {
  Timeline timeline(0);
  timeline.Wait(timeline.Add(Kernel({10, 0, 1}), nullptr));
  EXPECT_DOUBLE_EQ(timeline.Wait(timeline.Join({})), 10);
  EXPECT_DOUBLE_EQ(timeline.Wait(timeline.Add(Kernel({5, 0, 1}), nullptr)), 15);
}

TEST(TimelineTest, AJoinIsReachedWithTheLastOfItsMoments) {
  Timeline timeline(0);
  const Moment early = timeline.Add(Kernel({10, 0, 0.1}), nullptr);
  const Moment late = timeline.Add(Kernel({30, 0, 0.1}), nullptr);
  const Moment both = timeline.Join({early, late, nullptr});
  EXPECT_EQ(timeline.pending(), 3u);
  EXPECT_DOUBLE_EQ(timeline.Wait(both), 30);
  EXPECT_EQ(timeline.pending(), 0u);
}

TEST(TimelineTest, CopiesOfOneWayFollowEachOtherBesideKernelsAndTheOtherWay) {
  Timeline timeline(0);
  const Moment in = timeline.Add(ToDevice(10), nullptr);
  const Moment behind = timeline.Add(ToDevice(10), nullptr);
  const Moment out = timeline.Add(ToHost(15), nullptr);
  const Moment kernel = timeline.Add(Kernel({12, 0, 1}), nullptr);
  EXPECT_DOUBLE_EQ(timeline.Wait(timeline.Join({in, behind, out, kernel})), 20);
  EXPECT_DOUBLE_EQ(timeline.Wait(in), 10);
  EXPECT_DOUBLE_EQ(timeline.Wait(kernel), 12) << "the copies take nothing of the device";
  EXPECT_DOUBLE_EQ(timeline.Wait(out), 15);
}

TEST(TimelineTest, AKernelAfterACopyRunsBesideTheNextCopy) {
  Timeline timeline(0);
  const Moment first = timeline.Add(ToDevice(10), nullptr);
  const Moment second = timeline.Add(ToDevice(10), nullptr);
  const Moment kernel = timeline.Add(Kernel({7, 1, 0.5}), first);
  EXPECT_DOUBLE_EQ(timeline.Wait(kernel), 18);
  EXPECT_DOUBLE_EQ(timeline.Wait(second), 20);
}

TEST(TimelineTest, LongChainsOfWorkThatTakesNoTimeNeedNoStack) {
  constexpr size_t kLength = 300'000;
  Timeline waited(0);
  Moment last = waited.Add(Kernel({10, 0, 1}), nullptr);
  for (size_t i = 0; i < kLength; ++i) last = waited.Join({last});
  EXPECT_DOUBLE_EQ(waited.Wait(last), 10);
  Timeline left(0);
  last = left.Add(Kernel({10, 0, 1}), nullptr);
  for (size_t i = 0; i < kLength; ++i) last = left.Join({last});
  EXPECT_EQ(left.pending(), kLength + 1);
}

// The time of an assignment whose operations are issued as calls. Each operation begins behind the
// last operation of its stream, and behind the operations that it waits for.
double Issue(const Assignment& assignment, const std::vector<Cost>& costs, double front_end_ns) {
  Timeline timeline(front_end_ns);
  std::vector<Moment> streams(static_cast<size_t>(assignment.streams)), ends(costs.size());
  for (const NodeId node : assignment.order) {
    Moment& stream = streams[static_cast<size_t>(assignment.stream[At(node)])];
    std::vector<Moment> before = {stream};
    for (const NodeId other : assignment.waits[At(node)]) before.push_back(ends[At(other)]);
    stream = ends[At(node)] = timeline.Add(Kernel(costs[At(node)]), timeline.Join(before));
  }
  return timeline.Wait(timeline.Join(ends));
}

TEST(TimelineTest, TakesAsLongAsTheModelOfTheWholeGraph) {
  Random random(harness::Seed());
  for (int round = 0; round < 300; ++round) {
    const int nodes = 1 + static_cast<int>(random() % 60);
    const Dag dag = RandomDag(nodes, nodes * (1 + static_cast<int>(random() % 3)), 20, &random);
    const std::vector<Cost> costs = RandomCosts(nodes, &random);
    const double front_end_ns = random() % 2 == 0 ? 0 : 2'000;
    const Assignment assignment = AssignNimble(dag, 1 + static_cast<int>(random() % 8));
    ASSERT_DOUBLE_EQ(Issue(assignment, costs, front_end_ns),
                     Makespan(assignment, costs, front_end_ns));
  }
}

}  // namespace
}  // namespace scheduler::streams
