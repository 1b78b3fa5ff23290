// Translates the program's handles to graphs and nodes, and CUDA's parameter structures to work of
// nodes. The graph*.cc files beside this one share these functions. Thread safety: any thread.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "shim/graphs/executable.h"
#include "shim/graphs/graph.h"

namespace local {

using shim::graphs::Executable;
using shim::graphs::Graph;
using shim::graphs::Node;
using shim::graphs::Objects;
using shim::graphs::UserObject;
using shim::graphs::Work;

inline CUgraphNode HandleOf(const Node& node) { return reinterpret_cast<CUgraphNode>(node.name()); }
inline CUgraph HandleOf(const Graph& graph) { return reinterpret_cast<CUgraph>(graph.name()); }
using shim::graphs::ResultOf;
inline CUresult Fail(CUresult code, const char*) { return code; }  // the text is the bare device's

// Each Find fails with the session's failure first.
#include "ipc/calls/graph_params_declared.inc"

}  // namespace local
