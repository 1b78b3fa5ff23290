// A graph in the language of Graphviz: `dot -Tsvg FILE`. Nodes have the colours of their streams;
// an edge between streams, a synchronisation, is dashed; the critical path is bold; a frame of
// dashes says that what the node touches is not known. Pure. Thread safety: stateless.
#pragma once

#include <string>

#include "cli/graph/iteration_graph.h"
#include "cli/graph/labels.h"

namespace graph {

std::string DotText(const IterationGraph& graph, const Caption& caption);

// As a string of the language, with its quotes. It holds no line's end, and no escape of Graphviz.
std::string DotQuoted(const std::string& text);

}  // namespace graph
