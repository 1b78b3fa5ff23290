// A graph as JSON, for programs. Pure. Thread safety: stateless.
#pragma once

#include <string>

#include "cli/graph/iteration_graph.h"
#include "cli/graph/labels.h"

namespace graph {

// One object: the figures, "nodes" and "edges", whose numbers are the nodes' places.
std::string GraphJson(const IterationGraph& graph, const Caption& caption);

}  // namespace graph
