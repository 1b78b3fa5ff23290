#include "cli/graph/svg.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/graph/layout.h"
#include "cli/report/drawing.h"
#include "cli/table.h"

namespace graph {
namespace {

using report::Escaped;
using scheduler::streams::Access;
using scheduler::streams::At;

// Pixels.
constexpr int kBoxWidth = 184, kBoxHeight = 38, kColumnGap = 48, kRowGap = 28;
constexpr int kMargin = 24, kTop = 96, kWidthMin = 1000;
constexpr size_t kBoxLetters = 26, kHintLetters = 400;

constexpr const char* kStyle =
    "<style>text{font:12px sans-serif;fill:#1a1a1a}.head{font:bold 15px sans-serif}"
    ".small{font-size:11px}.box{stroke:#444;stroke-width:1}.edge{fill:none;stroke:#555;"
    "stroke-width:1}.bold{stroke:#000;stroke-width:3}.dash{stroke-dasharray:6 4}"
    ".open{stroke-dasharray:3 3}</style>\n";

struct Point {
  int x = 0, y = 0;
};

Point CornerOf(const Place& place) {
  return {kMargin + place.column * (kBoxWidth + kColumnGap),
          kTop + place.row * (kBoxHeight + kRowGap)};
}

std::string Text(Point at, const char* style, const std::string& text) {
  return absl::StrCat("<text x=\"", at.x, "\" y=\"", at.y, "\" class=\"", style, "\">",
                      Escaped(text), "</text>\n");
}

std::string HintOf(const Operation& operation) {
  std::string hint = NameOf(operation, kHintLetters);
  if (operation.kind == Operation::Kind::kKernel)
    absl::StrAppend(&hint, "\n", SizesText(operation.blocks), " blocks of ",
                    SizesText(operation.threads), " threads");
  if (operation.kind != Operation::Kind::kHostWait)
    absl::StrAppend(&hint, "\nthe program's stream: ", StreamName(operation.slot),
                    "\ntime: ", DurationText(operation.time_ns));
  if (!operation.unknown.empty())
    return absl::StrCat(hint, "\nmemory not known: ", cli::Printable(operation.unknown));
  for (const Touch& touch : operation.touches) {
    const char* const use = touch.access == Access::kRead    ? "reads"
                            : touch.access == Access::kWrite ? "writes"
                                                             : "updates";
    absl::StrAppend(&hint, "\n", use, " ", cli::BytesText(touch.range.bytes),
                    absl::StrFormat(" at %#x", touch.range.begin));
  }
  return hint;
}

std::string NodeSvg(const IterationGraph& graph, const Place& place, NodeId node) {
  const Operation& operation = graph.operations[At(node)];
  const Point corner = CornerOf(place);
  const std::string style = absl::StrCat("box", graph.critical[At(node)] ? " bold" : "",
                                         operation.unknown.empty() ? "" : " open");
  std::string svg =
      absl::StrCat("<g><title>", Escaped(HintOf(operation)), "</title><rect x=\"", corner.x,
                   "\" y=\"", corner.y, "\" width=\"", kBoxWidth, "\" height=\"", kBoxHeight,
                   "\" rx=\"", graph.IsWork(node) ? 4 : kBoxHeight / 2, "\" class=\"", style,
                   "\" fill=\"", ColourCode(ToneOf(graph, node)), "\"/>\n",
                   Text({corner.x + 8, corner.y + 16}, "", NameOf(operation, kBoxLetters)));
  if (graph.IsWork(node))
    absl::StrAppend(&svg,
                    Text({corner.x + 8, corner.y + 31}, "small", DurationText(operation.time_ns)));
  return absl::StrCat(svg, "</g>\n");
}

// An edge down its own column passes beside the boxes between its ends.
std::string PathOf(const Place& from, const Place& to) {
  const Point a = CornerOf(from), b = CornerOf(to);
  const int ax = a.x + kBoxWidth / 2, ay = a.y + kBoxHeight, bx = b.x + kBoxWidth / 2, by = b.y;
  if (from.column == to.column && to.row == from.row + 1)
    return absl::StrCat("M", ax, " ", ay, "L", bx, " ", by);
  if (from.column == to.column) {
    const int beside = a.x + kBoxWidth + kColumnGap / 2;
    return absl::StrCat("M", ax, " ", ay, "C", beside, " ", ay + kRowGap, " ", beside, " ",
                        by - kRowGap, " ", bx, " ", by);
  }
  return absl::StrCat("M", ax, " ", ay, "C", ax, " ", ay + kRowGap, " ", bx, " ", by - kRowGap, " ",
                      bx, " ", by);
}

std::string EdgeSvg(const IterationGraph& graph, const Layout& layout, NodeId from, NodeId to) {
  const bool synchronises = IsSynchronisation(graph, from, to);
  const bool critical = graph.critical[At(from)] && graph.critical[At(to)];
  return absl::StrCat("<path d=\"", PathOf(layout.places[At(from)], layout.places[At(to)]),
                      "\" class=\"edge", synchronises ? " dash" : "", critical ? " bold" : "",
                      "\" marker-end=\"url(#end)\"/>\n");
}

std::string HeadSvg(const IterationGraph& graph, const Caption& caption) {
  const std::string times =
      graph.timed == 0 ? "no times are known"
                       : absl::StrCat("critical path ", DurationText(graph.path_ns), " of ",
                                      DurationText(graph.sum_ns), " (", TimeName(caption), ")");
  return absl::StrCat(
      Text({kMargin, 24}, "head",
           absl::StrCat("One iteration of job ", caption.job, ": ",
                        cli::Printable(caption.program))),
      Text({kMargin, 44}, "",
           absl::StrCat(graph.operations.size(), " operations, ", graph.dag.edges(), " edges; ",
                        Counted(graph.streams, "stream", "streams"), " and ",
                        Counted(graph.synchronisations, "synchronisation", "synchronisations"),
                        " for all the concurrency; ", times)),
      Text({kMargin, 62}, "small",
           absl::StrCat("columns: assigned streams; colours: ",
                        ColouredByProgram(graph) ? "the program's own streams" : "assigned streams",
                        "; dashed edge: synchronisation; bold: critical path; dashed frame: memory "
                        "not known")));
}

}  // namespace

std::string GraphSvg(const IterationGraph& graph, const Caption& caption) {
  const Layout layout = LayOut(graph);
  const Point end = CornerOf({layout.columns, layout.rows});
  std::string svg = absl::StrCat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", std::max(kWidthMin, end.x),
      "\" height=\"", end.y + kMargin, "\">\n", kStyle,
      "<defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" "
      "markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L8 4L0 "
      "8Z\" fill=\"#333\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n",
      HeadSvg(graph, caption));
  for (NodeId node = 0; node < graph.dag.nodes(); ++node) {
    for (const NodeId after : graph.dag.Successors(node))
      absl::StrAppend(&svg, EdgeSvg(graph, layout, node, after));
  }
  for (NodeId node = 0; node < graph.dag.nodes(); ++node)
    absl::StrAppend(&svg, NodeSvg(graph, layout.places[At(node)], node));
  return absl::StrCat(svg, "</svg>\n");
}

}  // namespace graph
