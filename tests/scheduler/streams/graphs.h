// Graphs of any size for tests and benchmarks of stream assignment.
#pragma once

#include <random>
#include <vector>

#include "scheduler/streams/dag.h"
#include "scheduler/streams/device_model.h"

namespace scheduler::streams {

using Random = std::mt19937_64;

// Each pair of nodes is an edge if its bit of `pairs` is set: pairs (0, 1), (0, 2), (1, 2), (0, 3)
// and so on. All numbers below 2^(nodes * (nodes - 1) / 2) are all graphs in program order.
Dag FromPairs(int nodes, uint64_t pairs);

// `edges` random ones; of each the ends are at most `reach` nodes apart.
Dag RandomDag(int nodes, int edges, int reach, Random* random);
// Layers of `width`; each node depends on `fan_in` random ones of the layer before.
Dag Layered(int nodes, int width, int fan_in, Random* random);
// A source, a sink, and all other nodes between them.
Dag Wide(int nodes);
Dag Chain(int nodes);
// Two chains with a rung between them at each step, in alternating directions.
Dag Ladder(int nodes);

// The most nodes of which no two have a path between them.
int Width(const Dag& dag);

std::vector<Cost> RandomCosts(int nodes, Random* random);

}  // namespace scheduler::streams
