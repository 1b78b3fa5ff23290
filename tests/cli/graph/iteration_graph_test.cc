#include "cli/graph/iteration_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cli/graph/layout.h"
#include "ipc/call_trace.h"
#include "scheduler/streams/nimble.h"
#include "tests/harness/seed.h"

namespace graph {
namespace {

using scheduler::streams::Access;
using scheduler::streams::At;
using Closure = std::vector<std::vector<bool>>;

Closure ClosureOf(const Dag& dag) {
  const size_t nodes = At(dag.nodes());
  Closure reaches(nodes, std::vector<bool>(nodes));
  for (NodeId from = 0; from < dag.nodes(); ++from) {
    for (const NodeId to : dag.Successors(from)) reaches[At(from)][At(to)] = true;
  }
  for (size_t k = 0; k < nodes; ++k) {
    for (size_t i = 0; i < nodes; ++i) {
      for (size_t j = 0; j < nodes; ++j)
        if (reaches[i][k] && reaches[k][j]) reaches[i][j] = true;
    }
  }
  return reaches;
}

// Over 12 addresses, by single bytes.
IterationWork RandomWork(std::mt19937_64* random) {
  IterationWork work;
  const NodeId nodes = static_cast<NodeId>((*random)() % 10);
  for (NodeId node = 0; node < nodes; ++node) {
    Operation& operation = work.operations.emplace_back();
    operation.kind = (*random)() % 8 == 0 ? Operation::Kind::kHostWait : Operation::Kind::kKernel;
    operation.slot = operation.kind == Operation::Kind::kHostWait
                         ? ipc::kNoTraceSlot
                         : static_cast<uint32_t>((*random)() % 3);
    if ((*random)() % 6 == 0) operation.unknown = "random";
    for (uint64_t i = (*random)() % 3; i != 0; --i) {
      operation.touches.push_back(
          {{(*random)() % 10, 1 + (*random)() % 3}, static_cast<Access>((*random)() % 3)});
    }
    operation.time_ns = static_cast<int64_t>((*random)() % 5) - 1;
    for (NodeId before = 0; before < node; ++before) {
      if ((*random)() % 3 == 0) work.order.push_back({before, node});
    }
  }
  return work;
}

bool Touches(const Operation& operation, uint64_t address, bool writes) {
  for (const Touch& touch : operation.touches) {
    if (address < touch.range.begin || address >= touch.range.end()) continue;
    if (!writes || touch.access != Access::kRead) return true;
  }
  return false;
}

bool Conflict(const Operation& a, const Operation& b) {
  for (const Operation* const each : {&a, &b}) {
    if (each->kind == Operation::Kind::kHostWait || !each->unknown.empty()) return true;
  }
  for (uint64_t address = 0; address < 16; ++address) {
    if (Touches(a, address, true) && Touches(b, address, false)) return true;
    if (Touches(a, address, false) && Touches(b, address, true)) return true;
  }
  return false;
}

TEST(DependenciesTest, AreTheConflictsWithinTheProgramsOrder) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 2000; ++round) {
    const IterationWork work = RandomWork(&random);
    const Dag order = *Dag::Make(static_cast<int>(work.operations.size()), work.order);
    const Closure ordered = ClosureOf(order);
    std::vector<Edge> direct;
    for (NodeId j = 0; j < order.nodes(); ++j) {
      for (NodeId i = 0; i < j; ++i) {
        if (ordered[At(i)][At(j)] && Conflict(work.operations[At(i)], work.operations[At(j)]))
          direct.push_back({i, j});
      }
    }
    const Closure expected = ClosureOf(*Dag::Make(order.nodes(), direct));
    const Dag found = DependenciesOf(work.operations, order);
    ASSERT_EQ(ClosureOf(found), expected) << "round " << round;
    for (NodeId from = 0; from < found.nodes(); ++from) {
      for (const NodeId to : found.Successors(from)) {
        for (NodeId between = from + 1; between < to; ++between) {
          ASSERT_FALSE(expected[At(from)][At(between)] && expected[At(between)][At(to)])
              << "an edge that others imply";
        }
      }
    }
  }
}

// The most weight on any path that begins at the node.
int64_t LongestFrom(const Dag& dag, NodeId node, const std::function<int64_t(NodeId)>& weight) {
  int64_t longest = 0;
  for (const NodeId after : dag.Successors(node))
    longest = std::max(longest, LongestFrom(dag, after, weight));
  return longest + weight(node);
}

TEST(CriticalPathTest, NoPathHasMoreTime) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 2000; ++round) {
    IterationWork work = RandomWork(&random);
    if (round % 3 == 0) {
      for (Operation& operation : work.operations) operation.time_ns = -1;
    }
    const bool timed = std::any_of(work.operations.begin(), work.operations.end(),
                                   [](const Operation& each) { return each.time_ns > 0; });
    const auto weight = [&work, timed](NodeId node) -> int64_t {
      const Operation& operation = work.operations[At(node)];
      if (timed) return std::max<int64_t>(0, operation.time_ns);
      return operation.kind == Operation::Kind::kHostWait ? 0 : 1;
    };
    const Dag dag = *Dag::Make(static_cast<int>(work.operations.size()), work.order);
    int64_t longest = 0, found = 0;
    for (NodeId node = 0; node < dag.nodes(); ++node)
      longest = std::max(longest, LongestFrom(dag, node, weight));
    const std::vector<NodeId> path = CriticalPath(dag, work.operations);
    for (size_t i = 0; i < path.size(); ++i) {
      found += weight(path[i]);
      if (i == 0) continue;
      const std::span<const NodeId> next = dag.Successors(path[i - 1]);
      ASSERT_TRUE(std::find(next.begin(), next.end(), path[i]) != next.end()) << "it is a path";
    }
    ASSERT_EQ(found, longest) << "round " << round;
  }
}

TEST(LayoutTest, EachNodeHasAPlaceOfItsOwnBelowWhatItDependsOn) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 500; ++round) {
    std::optional<IterationGraph> graph = MakeGraph(RandomWork(&random));
    ASSERT_TRUE(graph.has_value());
    if (round % 2 == 0) graph->assignment = scheduler::streams::AssignNimble(graph->dag, 2);
    const Layout layout = LayOut(*graph);
    for (NodeId node = 0; node < graph->dag.nodes(); ++node) {
      const Place& place = layout.places[At(node)];
      ASSERT_TRUE(place.row < layout.rows && place.column < layout.columns);
      for (const NodeId before : graph->dag.Predecessors(node))
        ASSERT_LT(layout.places[At(before)].row, place.row);
      for (NodeId other = 0; other < node; ++other) {
        const Place& taken = layout.places[At(other)];
        ASSERT_FALSE(taken == place);
        if (graph->IsWork(node) && graph->IsWork(other)) {
          const bool same =
              graph->assignment.stream[At(node)] == graph->assignment.stream[At(other)];
          ASSERT_EQ(same, taken.column == place.column);
        }
      }
    }
  }
}

Operation Kernel(uint32_t slot, std::vector<Touch> touches, int64_t time_ns) {
  Operation operation;
  operation.name = "k";
  operation.slot = slot;
  operation.touches = std::move(touches);
  operation.time_ns = time_ns;
  return operation;
}

TEST(MakeGraphTest, TwoBranchesAndTheirJoin) {
  IterationWork work;
  work.operations = {Kernel(7, {{{0, 4}, Access::kWrite}}, 10),
                     Kernel(7, {{{0, 4}, Access::kRead}, {{8, 4}, Access::kWrite}}, 20),
                     Kernel(7, {{{0, 4}, Access::kRead}, {{16, 4}, Access::kWrite}}, 5),
                     Kernel(7, {{{8, 4}, Access::kRead}, {{16, 4}, Access::kRead}}, 1)};
  work.order = {{0, 1}, {1, 2}, {2, 3}};
  const std::optional<IterationGraph> graph = MakeGraph(work);
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(graph->dag.edges(), 4);
  EXPECT_EQ(graph->streams, 2);
  EXPECT_EQ(graph->synchronisations, 2);
  EXPECT_EQ(graph->path_ns, 31);
  EXPECT_EQ(graph->sum_ns, 36);
  EXPECT_EQ(graph->path_operations, 3);
  EXPECT_EQ(graph->critical, std::vector<bool>({true, true, false, true}));
  EXPECT_EQ(graph->slots, std::vector<uint32_t>{7});
  work.order = {{0, 3}};
  work.order.push_back({0, 9});
  EXPECT_FALSE(MakeGraph(work).has_value()) << "an edge to nowhere";
}

}  // namespace
}  // namespace graph
