#include "cli/graph/dot.h"

#include "absl/strings/str_cat.h"
#include "cli/graph/labels.h"
#include "cli/table.h"

namespace graph {
namespace {

using scheduler::streams::At;

constexpr size_t kDotLetters = 40;
constexpr const char* kEndOfLine = "\\n";  // Graphviz's own escape, which DotQuoted() takes apart

std::string NodeText(const IterationGraph& graph, NodeId node) {
  const Operation& operation = graph.operations[At(node)];
  std::string label = DotQuoted(NameOf(operation, kDotLetters));
  if (graph.IsWork(node)) {
    label.pop_back();
    absl::StrAppend(&label, kEndOfLine, DurationText(operation.time_ns), "\"");
  }
  const std::string hint = operation.unknown.empty()
                               ? operation.name
                               : absl::StrCat(operation.name, ": ", operation.unknown);
  return absl::StrCat("  n", node, " [label=", label, ", tooltip=", DotQuoted(cli::Printable(hint)),
                      ", fillcolor=\"", ColourCode(ToneOf(graph, node)), "\", style=\"filled",
                      operation.unknown.empty() ? "" : ",dashed",
                      "\", penwidth=", graph.critical[At(node)] ? 3 : 1,
                      graph.IsWork(node) ? "" : ", shape=hexagon", "];\n");
}

std::string EdgeText(const IterationGraph& graph, NodeId from, NodeId to) {
  const bool synchronises = IsSynchronisation(graph, from, to);
  const bool critical = graph.critical[At(from)] && graph.critical[At(to)];
  return absl::StrCat("  n", from, " -> n", to, " [style=", synchronises ? "dashed" : "solid",
                      ", penwidth=", critical ? 3 : 1, "];\n");
}

}  // namespace

std::string DotQuoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(letter) < 0x20 ? '?' : letter;
  }
  return quoted + "\"";
}

std::string DotText(const IterationGraph& graph, const Caption& caption) {
  std::string text = absl::StrCat(
      "digraph iteration {\n  label=",
      DotQuoted(absl::StrCat("one iteration of job ", caption.job, ", ",
                             cli::Printable(caption.program), "; times: ", TimeName(caption))),
      ";\n  labelloc=t;\n  node [shape=box, fontname=\"sans-serif\"];\n");
  for (NodeId node = 0; node < graph.dag.nodes(); ++node)
    absl::StrAppend(&text, NodeText(graph, node));
  for (NodeId node = 0; node < graph.dag.nodes(); ++node) {
    for (const NodeId after : graph.dag.Successors(node))
      absl::StrAppend(&text, EdgeText(graph, node, after));
  }
  return absl::StrCat(text, "}\n");
}

}  // namespace graph
