// What Nimble's assignment makes of six published networks.
//
// The paper's table 3.1 has 12 and 15 streams for NASNet-A mobile and large: its graphs had been
// simplified. Identical poolings of one input made one give 11 and 14, and those of the definitions
// as they are give 13 and 16.
#include "tests/scheduler/streams/networks.h"

#include <gtest/gtest.h>

#include "scheduler/streams/nimble.h"
#include "scheduler/streams/reduction.h"

namespace scheduler::streams {
namespace {

struct NetworkRow {
  const char* network;
  int operators, edges, minimal_edges, matched, streams, synchronisations;
};

TEST(NetworksTest, EdgesMatchedStreamsAndSynchronisations) {
  constexpr NetworkRow kRows[] = {
      {"inception_v3", 218, 252, 252, 182, 6, 70},
      {"darts", 545, 645, 619, 485, 7, 134},
      {"amoebanet", 553, 653, 641, 475, 11, 166},
      {"nasnet_a_mobile", 738, 893, 865, 621, 13, 244},
      {"nasnet_a_large", 980, 1195, 1155, 821, 16, 334},
      {"resnet50", 121, 136, 124, 116, 2, 8},
  };
  for (const NetworkRow& row : kRows) {
    const Dag dag = GraphOf(ReadNetwork(row.network));
    const int minimal_edges = Reduce(dag).minimal.edges();
    const Assignment assignment = AssignNimble(dag);
    EXPECT_EQ(dag.nodes(), row.operators) << row.network;
    EXPECT_EQ(dag.edges(), row.edges) << row.network;
    EXPECT_EQ(minimal_edges, row.minimal_edges) << row.network;
    EXPECT_EQ(minimal_edges - assignment.synchronisations, row.matched) << row.network;
    EXPECT_EQ(assignment.streams, row.streams) << row.network;
    EXPECT_EQ(assignment.synchronisations, row.synchronisations) << row.network;
    EXPECT_TRUE(Valid(dag, assignment)) << row.network;
  }
}

}  // namespace
}  // namespace scheduler::streams
