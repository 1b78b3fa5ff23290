// The dependency graph of one iteration, and its figures.
//
// An operation depends on an earlier operation if the program orders the two and both touch a byte
// in common, of which one writes the byte. An operation on unknown memory, and a wait of the host,
// depend on each operation that the program orders before them; each operation that the program
// orders after them depends on them. Two operations that the program leaves unordered never depend
// on each other.
//
// The graph is minimal: without edges that others imply (scheduler/streams/reduction.h). Its
// assignment to streams is Nimble's (scheduler/streams/nimble.h): all the concurrency that the
// dependencies leave, with the fewest synchronisations. Pure. Thread safety: stateless.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/graph/operations.h"
#include "scheduler/streams/assignment.h"
#include "scheduler/streams/dag.h"

namespace graph {

using scheduler::streams::Assignment;
using scheduler::streams::Dag;

// The minimal graph of dependencies. REQUIRES: the edges of the program's order make a Dag.
Dag DependenciesOf(const std::vector<Operation>& operations, const Dag& program_order);

// A path of the graph with the most time on it; among equals the first found. Without any time, one
// with the most operations of the device.
std::vector<NodeId> CriticalPath(const Dag& dag, const std::vector<Operation>& operations);

struct IterationGraph {
  std::vector<Operation> operations;
  Dag dag = *Dag::Make(0, {});
  Assignment assignment;
  std::vector<bool> critical;   // of each operation
  std::vector<uint32_t> slots;  // the program's own streams, by first use
  int streams = 0;              // assigned ones that have work of the device
  int synchronisations = 0;     // between these
  int event_waits = 0;
  int joins = 0;
  int timed = 0;  // operations whose time is known
  int64_t path_ns = 0;
  int64_t sum_ns = 0;
  int path_operations = 0;  // of the device, on the critical path

  bool IsWork(NodeId node) const {
    return operations[scheduler::streams::At(node)].kind != Operation::Kind::kHostWait;
  }
};

// None: there are more operations than kNodesMax.
std::optional<IterationGraph> MakeGraph(IterationWork work);

}  // namespace graph
