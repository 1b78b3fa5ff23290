// Where a graph's nodes are drawn: a column for each assigned stream, in which the stream's nodes
// follow each other downwards, and a row for each step of the longest path. So an edge within a
// stream leads straight down, an edge between columns is a synchronisation, and what lies in one
// row may run at the same time. Waits of the host have the first column.
//
// Nodes of one column have different rows: a path leads from one to the other, unless streams were
// folded, and then a node moves down until its place is free. Pure. Thread safety: stateless.
#pragma once

#include <vector>

#include "cli/graph/iteration_graph.h"

namespace graph {

struct Place {
  int column = 0;
  int row = 0;
  bool operator==(const Place&) const = default;
};

struct Layout {
  std::vector<Place> places;  // of each node; no two are equal
  int columns = 0;
  int rows = 0;
};

// Each node lies below all that it depends on.
Layout LayOut(const IterationGraph& graph);

}  // namespace graph
