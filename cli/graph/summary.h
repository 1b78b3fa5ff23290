// A graph as text for a terminal. Pure. Thread safety: stateless.
#pragma once

#include <string>

#include "cli/graph/iteration_graph.h"
#include "cli/graph/labels.h"

namespace graph {

std::string SummaryText(const IterationGraph& graph, const Caption& caption);

}  // namespace graph
