// Freed ranges that wait: the queue, and how much concurrency of six networks it saves.
#include "scheduler/streams/reuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "scheduler/streams/dependencies.h"
#include "tests/scheduler/streams/best_fit.h"
#include "tests/scheduler/streams/graphs.h"
#include "tests/scheduler/streams/networks.h"

namespace scheduler::streams {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();

TEST(FreedQueueTest, TheOldestLeavesWhenMoreWaitThanIsKept) {
  FreedQueue queue(10);
  queue.Free({100, 6});
  queue.Free({200, 4});
  EXPECT_FALSE(queue.Take().has_value()) << "10 bytes are kept";
  queue.Free({300, 1});
  EXPECT_EQ(queue.Take(), (Range{100, 6}));
  EXPECT_FALSE(queue.Take().has_value());
  EXPECT_EQ(queue.bytes(), 5u);
}

TEST(FreedQueueTest, KeepsNothingBackWhereNothingIsToBeKept) {
  FreedQueue queue(0);
  queue.Free({100, 6});
  EXPECT_EQ(queue.Take(), (Range{100, 6}));
  EXPECT_FALSE(queue.Take().has_value());
}

TEST(FreedQueueTest, ForWantOfRoomTheOldestLeavesEarly) {
  FreedQueue queue(kAll);
  EXPECT_FALSE(queue.TakeEarly().has_value());
  queue.Free({100, 6});
  queue.Free({200, 4});
  EXPECT_FALSE(queue.Take().has_value());
  EXPECT_EQ(queue.TakeEarly(), (Range{100, 6}));
  EXPECT_EQ(queue.bytes(), 4u);
}

TEST(FreedQueueTest, NothingWaitsPastABoundary) {
  FreedQueue queue(kAll);
  queue.Free({100, 6});
  queue.Free({200, 4});
  EXPECT_EQ(queue.TakeAtBoundary(), (std::vector<Range>{{100, 6}, {200, 4}}));
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_FALSE(queue.TakeEarly().has_value());
}

// A network as its calls show it: the program allocates each output before the operator, and frees
// the output after the last operator that reads from there.
struct Recorded {
  Dag dag;
  uint64_t arena_bytes = 0;
};

Recorded RunNetwork(const std::vector<Operator>& operators, uint64_t kept_bytes) {
  std::vector<NodeId> last_reader(operators.size(), kNoNode);
  for (size_t node = 0; node < operators.size(); ++node) {
    for (const NodeId parent : operators[node].parents) {
      last_reader[At(parent)] = static_cast<NodeId>(node);
    }
  }
  BestFit allocator(kept_bytes);
  Dependencies dependencies;
  std::vector<Range> outputs;
  for (const Operator& each : operators) {
    outputs.push_back(allocator.Allocate(static_cast<uint64_t>(each.elements_written) * 4));
    std::vector<Touch> touches = {{outputs.back(), Access::kWrite}};
    for (const NodeId parent : each.parents)
      touches.push_back({outputs[At(parent)], Access::kRead});
    const NodeId node = dependencies.Add(touches);
    std::vector<NodeId> parents = each.parents;
    std::sort(parents.begin(), parents.end());
    parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
    for (const NodeId parent : parents) {
      if (last_reader[At(parent)] == node) allocator.Free(outputs[At(parent)]);
    }
  }
  return {*dependencies.Graph(), allocator.arena_bytes()};
}

struct Cell {
  int width = 0;
  double memory_mib = 0;
};

struct Row {
  uint64_t kept_bytes;
  Cell cells[5];
};

// Expected figures are of another allocator by the same rules. Which of several free ranges of one
// size it takes changes widths by one, and the arena's size by up to an eighth.
TEST(ReuseTest, WidthsAndMemoryOfNetworksByBytesKeptBack) {
  const std::vector<std::string> networks = {"inception_v3", "darts", "amoebanet",
                                             "nasnet_a_mobile", "nasnet_a_large"};
  const Row kRows[] = {
      {0, {{3, 11}, {3, 3}, {4, 2}, {3, 5}, {3, 34}}},
      {kMiB, {{6, 11}, {7, 3}, {8, 3}, {11, 7}, {6, 34}}},
      {4 * kMiB, {{6, 13}, {7, 7}, {11, 6}, {13, 10}, {8, 37}}},
      {16 * kMiB, {{6, 23}, {7, 18}, {11, 18}, {13, 21}, {12, 52}}},
      {kAll, {{6, 89}, {7, 59}, {11, 56}, {13, 93}, {16, 981}}},
  };
  for (size_t network = 0; network < networks.size(); ++network) {
    const std::vector<Operator> operators = ReadNetwork(networks[network]);
    for (const Row& row : kRows) {
      const Recorded run = RunNetwork(operators, row.kept_bytes);
      const Cell expected = row.cells[network];
      const double memory_mib = static_cast<double>(run.arena_bytes) / kMiB;
      const int width = Width(run.dag);
      const std::string kept =
          row.kept_bytes == kAll ? "all" : std::to_string(row.kept_bytes / kMiB) + " MiB";
      std::printf("%-16s %6s kept: width %2d, %5.1f MiB\n", networks[network].c_str(), kept.c_str(),
                  width, memory_mib);
      EXPECT_NEAR(width, expected.width, row.kept_bytes == kAll ? 0 : 1) << networks[network];
      EXPECT_NEAR(memory_mib, expected.memory_mib, std::max(0.7, expected.memory_mib / 7.5))
          << networks[network] << ", kept " << kept;
    }
    EXPECT_EQ(Width(RunNetwork(operators, kAll).dag), Width(GraphOf(operators)));
  }
}

}  // namespace
}  // namespace scheduler::streams
