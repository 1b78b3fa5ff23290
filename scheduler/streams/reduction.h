// The minimum equivalent graph of a DAG: the fewest of its edges with the same paths between nodes.
//
// An edge goes when another path leads from its source to its target; for a DAG the result is
// unique. Costs one row of nodes/64 words for each edge that stays.
#pragma once

#include "scheduler/streams/bits.h"
#include "scheduler/streams/dag.h"

namespace scheduler::streams {

struct Reduction {
  Dag minimal;
  BitTable reaches;  // reaches.Has(a, b): a path of one edge or more leads from a to b
};

Reduction Reduce(const Dag& dag);

}  // namespace scheduler::streams
