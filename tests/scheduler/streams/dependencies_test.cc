// Dependencies by ranges of addresses, against brute force over pairs of operations.
#include "scheduler/streams/dependencies.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "scheduler/streams/reduction.h"
#include "tests/harness/seed.h"

namespace scheduler::streams {
namespace {

using Random = std::mt19937_64;

Touch Reads(uint64_t begin, uint64_t bytes) { return {{begin, bytes}, Access::kRead}; }
Touch Writes(uint64_t begin, uint64_t bytes) { return {{begin, bytes}, Access::kWrite}; }
Touch Updates(uint64_t begin, uint64_t bytes) { return {{begin, bytes}, Access::kUpdate}; }

bool Ordered(const Dependencies& dependencies, NodeId first, NodeId second) {
  return Reduce(*dependencies.Graph()).reaches.Has(first, second);
}

TEST(DependenciesTest, ReadsAreNotOrderedAndWritesAre) {
  Dependencies dependencies;
  dependencies.Add({Writes(0, 10)});
  dependencies.Add({Reads(0, 10)});
  dependencies.Add({Reads(5, 10)});
  dependencies.Add({Writes(9, 1)});
  EXPECT_TRUE(Ordered(dependencies, 0, 1)) << "read after write";
  EXPECT_TRUE(Ordered(dependencies, 0, 2)) << "read after write of a part";
  EXPECT_FALSE(Ordered(dependencies, 1, 2)) << "two reads";
  EXPECT_TRUE(Ordered(dependencies, 1, 3)) << "write after read";
  EXPECT_TRUE(Ordered(dependencies, 2, 3));
  dependencies.Add({Writes(9, 1)});
  EXPECT_TRUE(Ordered(dependencies, 3, 4)) << "write after write";
  dependencies.Add({Reads(8, 1)});
  EXPECT_FALSE(Ordered(dependencies, 3, 5)) << "the byte beside what it wrote";
  EXPECT_TRUE(Ordered(dependencies, 0, 5));
}

TEST(DependenciesTest, AnUpdateReadsAndWrites) {
  Dependencies dependencies;
  dependencies.Add({Updates(0, 4)});
  dependencies.Add({Updates(2, 4)});
  dependencies.Add({Updates(4, 4)});
  EXPECT_TRUE(Ordered(dependencies, 0, 1));
  EXPECT_TRUE(Ordered(dependencies, 1, 2));
}

TEST(DependenciesTest, ABarrierIsOrderedWithEverything) {
  Dependencies dependencies;
  dependencies.Add({Reads(0, 1)});
  dependencies.Add({});
  EXPECT_EQ(dependencies.AddBarrier(), 2);
  dependencies.Add({Reads(0, 1)});
  dependencies.Add({});
  dependencies.AddBarrier();
  for (const NodeId other : {0, 1}) EXPECT_TRUE(Ordered(dependencies, other, 2));
  for (const NodeId other : {3, 4, 5}) EXPECT_TRUE(Ordered(dependencies, 2, other));
  EXPECT_FALSE(Ordered(dependencies, 3, 4));
}

// A byte that two operations touch and one writes, or a barrier.
struct Operation {
  bool barrier = false;
  std::vector<Touch> touches;
};

bool Conflict(const Operation& one, const Operation& other) {
  if (one.barrier || other.barrier) return true;
  for (const Touch& a : one.touches) {
    for (const Touch& b : other.touches) {
      const bool overlap = a.range.begin < b.range.end() && b.range.begin < a.range.end();
      const bool reads = a.access == Access::kRead && b.access == Access::kRead;
      if (overlap && !reads && a.range.bytes != 0 && b.range.bytes != 0) return true;
    }
  }
  return false;
}

Operation RandomOperation(Random* random) {
  Operation operation;
  operation.barrier = (*random)() % 12 == 0;
  for (uint64_t i = (*random)() % 4; i > 0 && !operation.barrier; --i) {
    const Range range = {(*random)() % 16, (*random)() % 6};
    operation.touches.push_back({range, static_cast<Access>((*random)() % 3)});
  }
  return operation;
}

TEST(DependenciesTest, OrdersAsAllPairsDo) {
  Random random(harness::Seed());
  for (int round = 0; round < 20'000; ++round) {
    std::vector<Operation> operations;
    std::vector<Edge> conflicts;
    Dependencies dependencies;
    for (NodeId node = 0; node < 2 + round % 9; ++node) {
      operations.push_back(RandomOperation(&random));
      const Operation& latest = operations.back();
      for (NodeId other = 0; other < node; ++other) {
        if (Conflict(operations[At(other)], latest)) conflicts.push_back({other, node});
      }
      if (latest.barrier) {
        dependencies.AddBarrier();
      } else {
        dependencies.Add(latest.touches);
      }
    }
    const int nodes = static_cast<int>(operations.size());
    const Reduction expected = Reduce(*Dag::Make(nodes, conflicts));
    const Reduction actual = Reduce(*dependencies.Graph());
    for (NodeId from = 0; from < nodes; ++from) {
      for (NodeId to = from + 1; to < nodes; ++to) {
        ASSERT_EQ(actual.reaches.Has(from, to), expected.reaches.Has(from, to))
            << "round " << round << ": " << from << " before " << to;
      }
    }
  }
}

}  // namespace
}  // namespace scheduler::streams
