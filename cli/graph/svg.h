// A graph as one SVG file that loads nothing and runs nothing: laid out as layout.h says, nodes in
// the colours of their streams, synchronisations dashed, the critical path bold, unknown memory
// with a frame of dashes. Each node tells more when pointed at. All texts are escaped. Pure. Thread
// safety: stateless.
#pragma once

#include <string>

#include "cli/graph/iteration_graph.h"
#include "cli/graph/labels.h"

namespace graph {

std::string GraphSvg(const IterationGraph& graph, const Caption& caption);

}  // namespace graph
