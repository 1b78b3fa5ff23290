// Matchings in the bipartite graph of a DAG: each node stands once on the left, as the source of
// edges, and once on the right, as their target. Matched edges are the links of chains.
//
// Two steps. MaximumMatching links as many edges of the minimum equivalent graph as possible: each
// link saves a synchronisation. Extend then links the ends of chains to the beginnings of others
// that come after them on some path: each such link saves a stream. Where several maximum matchings
// exist, Extend moves to the one with the most such links, and keeps the number of matched edges.
//
// How Extend keeps the number: a minimum vertex cover of the edges (König) is a dual solution. A
// matching has maximum size exactly if it covers every node of the vertex cover, and each matched
// edge touches the vertex cover once. So Extend links edges that touch the vertex cover once, and
// pairs with longer paths that do not touch the vertex cover. Augmenting never uncovers a node.
//
// Both take O(sqrt(nodes)) phases (Hopcroft and Karp). A phase looks at each edge once, and in
// Extend also at each word of each row of `reaches`. Thread safety: pure functions.
#pragma once

#include <vector>

#include "scheduler/streams/dag.h"
#include "scheduler/streams/reduction.h"

namespace scheduler::streams {

struct Matching {
  explicit Matching(int nodes) : after(At(nodes), kNoNode), before(At(nodes), kNoNode) {}

  std::vector<NodeId> after;   // of each node on the left: its target, or kNoNode
  std::vector<NodeId> before;  // of each node on the right: its source, or kNoNode
  int links = 0;
};

// A largest set of edges of which no two have a source or a target in common.
Matching MaximumMatching(const Dag& dag);

// REQUIRES: `matching` is MaximumMatching(reduction.minimal). Its links afterwards are edges of
// reduction.minimal, as many as before, or pairs of nodes with a longer path between them.
void Extend(const Reduction& reduction, Matching* matching);

}  // namespace scheduler::streams
