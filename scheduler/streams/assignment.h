// Which stream each operation of an iteration runs on, and which events order the streams.
//
// Operations of one stream run in the order of issue. A node also waits for the events of other
// nodes; a node records an event if others wait for it. One wait for one node is one
// synchronisation. Thread safety: plain data.
#pragma once

#include <vector>

#include "scheduler/streams/dag.h"

namespace scheduler::streams {

// On which stream each node runs, by any numbers of at least 0, and in which order nodes are issued
// on all streams together: each node once, and after its predecessors in the graph.
struct Placement {
  std::vector<int> stream;
  std::vector<NodeId> order;
};

struct Assignment {
  int streams = 0;
  std::vector<int> stream;                 // of each node, from 0, by first use in `order`
  std::vector<NodeId> order;               // in which nodes are issued, on all streams together
  std::vector<std::vector<NodeId>> waits;  // of each node: nodes of other streams, in issue order
  std::vector<bool> records;               // of each node: whether others wait for it
  int synchronisations = 0;                // all waits
};

// The assignment with the fewest waits for a placement: the waits are the edges between streams of
// the minimum equivalent graph of dependencies and streams' own order together.
Assignment Synchronise(const Dag& dag, Placement placement);

// All nodes on one stream, in program order. One stream needs no waits.
Placement OneStream(const Dag& dag);

// Whether each node is issued once, on a stream that exists, and every wait is for an earlier node
// that records an event; whether the counts are right; and whether every node runs after its
// predecessors in the graph.
bool Valid(const Dag& dag, const Assignment& assignment);

}  // namespace scheduler::streams
