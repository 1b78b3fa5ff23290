#include "tests/scheduler/streams/graphs.h"

#include <algorithm>

#include "scheduler/streams/matching.h"
#include "scheduler/streams/reduction.h"

namespace scheduler::streams {
namespace {

int Below(int limit, Random* random) {
  return static_cast<int>((*random)() % static_cast<uint64_t>(limit));
}

}  // namespace

Dag FromPairs(int nodes, uint64_t pairs) {
  std::vector<Edge> edges;
  for (NodeId to = 1; to < nodes; ++to) {
    for (NodeId from = 0; from < to; ++from, pairs >>= 1) {
      if ((pairs & 1) != 0) edges.push_back({from, to});
    }
  }
  return *Dag::Make(nodes, edges);
}

Dag RandomDag(int nodes, int edges, int reach, Random* random) {
  std::vector<Edge> all;
  for (int i = 0; i < edges && nodes > 1; ++i) {
    const NodeId to = 1 + Below(nodes - 1, random);
    all.push_back({to - 1 - Below(std::min(to, reach), random), to});
  }
  return *Dag::Make(nodes, all);
}

Dag Layered(int nodes, int width, int fan_in, Random* random) {
  std::vector<Edge> all;
  for (NodeId to = width; to < nodes; ++to) {
    const NodeId layer = (to / width - 1) * width;
    for (int i = 0; i < fan_in; ++i) all.push_back({layer + Below(width, random), to});
  }
  return *Dag::Make(nodes, all);
}

Dag Wide(int nodes) {
  std::vector<Edge> all;
  for (NodeId node = 1; node + 1 < nodes; ++node) {
    all.push_back({0, node});
    all.push_back({node, nodes - 1});
  }
  return *Dag::Make(nodes, all);
}

Dag Chain(int nodes) {
  std::vector<Edge> all;
  for (NodeId node = 1; node < nodes; ++node) all.push_back({node - 1, node});
  return *Dag::Make(nodes, all);
}

Dag Ladder(int nodes) {
  std::vector<Edge> all;
  for (NodeId node = 2; node < nodes; ++node) {
    all.push_back({node - 2, node});
    if (node % 4 == 1 || node % 4 == 2) all.push_back({node - 1 - node % 2 * 2, node});
  }
  return *Dag::Make(nodes, all);
}

// Dilworth: as many as the fewest chains that hold all nodes, which a matching of all paths links.
int Width(const Dag& dag) {
  const Reduction reduction = Reduce(dag);
  std::vector<Edge> paths;
  for (NodeId from = 0; from < dag.nodes(); ++from) {
    for (NodeId to = from + 1; to < dag.nodes(); ++to) {
      if (reduction.reaches.Has(from, to)) paths.push_back({from, to});
    }
  }
  return dag.nodes() - MaximumMatching(*Dag::Make(dag.nodes(), paths)).links;
}

std::vector<Cost> RandomCosts(int nodes, Random* random) {
  std::vector<Cost> costs;
  for (int node = 0; node < nodes; ++node) {
    const double time_ns = 1'000 + Below(50'000, random);
    costs.push_back({time_ns, 2'000, (1 + Below(100, random)) / 100.0});
  }
  return costs;
}

}  // namespace scheduler::streams
