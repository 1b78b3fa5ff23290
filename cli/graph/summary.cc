#include "cli/graph/summary.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/table.h"

namespace graph {
namespace {

using scheduler::streams::At;
using Kind = Operation::Kind;

constexpr size_t kLongestShown = 10;
constexpr size_t kUnknownShown = 20;
constexpr size_t kLetters = 60;

int64_t CountOf(const IterationGraph& graph, Kind kind) {
  return std::count_if(graph.operations.begin(), graph.operations.end(),
                       [kind](const Operation& each) { return each.kind == kind; });
}

std::string KindsText(const IterationGraph& graph) {
  struct Name {
    Kind kind;
    const char* one;
    const char* several;
  };
  std::string text;
  for (const Name& name :
       {Name{Kind::kKernel, "kernel", "kernels"}, Name{Kind::kCopy, "copy", "copies"},
        Name{Kind::kFill, "fill", "fills"}, Name{Kind::kLibrary, "library call", "library calls"},
        Name{Kind::kGraph, "graph", "graphs"},
        Name{Kind::kHostFunction, "host function", "host functions"},
        Name{Kind::kHostWait, "wait of the host", "waits of the host"}}) {
    const int64_t count = CountOf(graph, name.kind);
    if (count == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", Counted(count, name.one, name.several));
  }
  return text;
}

int64_t Proven(const IterationGraph& graph) {
  return std::count_if(graph.operations.begin(), graph.operations.end(), [](const Operation& each) {
    return each.kind == Kind::kKernel && each.unknown.empty();
  });
}

std::string DependenciesText(const IterationGraph& graph) {
  const int64_t kernels = CountOf(graph, Kind::kKernel), proven = Proven(graph);
  std::string text =
      absl::StrCat(Counted(graph.dag.edges(), "edge", "edges"), " after transitive reduction");
  if (kernels == 0) return text;
  absl::StrAppend(&text, "; memory known of ", proven, " of ",
                  Counted(kernels, "kernel", "kernels"));
  if (proven == 0) absl::StrAppend(&text, ", so program order is the order");
  return text;
}

std::string ConcurrencyText(const IterationGraph& graph) {
  return absl::StrCat("degree ", graph.streams, ": ", Counted(graph.streams, "stream", "streams"),
                      " with ",
                      Counted(graph.synchronisations, "synchronisation", "synchronisations"),
                      " would have all of it");
}

std::string StreamsText(const IterationGraph& graph) {
  std::string text = Counted(static_cast<int64_t>(graph.slots.size()), "stream", "streams");
  if (graph.event_waits != 0)
    absl::StrAppend(&text, ", ",
                    Counted(graph.event_waits, "wait for an event", "waits for events"));
  if (graph.joins != 0)
    absl::StrAppend(&text, ", ", Counted(graph.joins, "join", "joins"),
                    " by Laneway for memory that is used again");
  return text;
}

std::string PathText(const IterationGraph& graph, const Caption& caption) {
  const int64_t work =
      static_cast<int64_t>(graph.operations.size()) - CountOf(graph, Kind::kHostWait);
  const std::string operations =
      absl::StrCat(graph.path_operations, " of ", Counted(work, "operation", "operations"));
  if (graph.timed == 0) return absl::StrCat(operations, "; no times are known");
  std::string text = absl::StrCat(operations, ", ", DurationText(graph.path_ns), " of ",
                                  DurationText(graph.sum_ns), " (", TimeName(caption));
  const int64_t untimed = work - graph.timed;
  if (untimed > 0) absl::StrAppend(&text, "; ", untimed, " without a time");
  return absl::StrCat(text, ")");
}

std::string LongestText(const IterationGraph& graph, const Caption& caption) {
  std::vector<size_t> kernels;
  for (size_t i = 0; i < graph.operations.size(); ++i) {
    if (graph.operations[i].kind == Kind::kKernel && graph.operations[i].time_ns >= 0)
      kernels.push_back(i);
  }
  if (kernels.empty()) return "";
  std::stable_sort(kernels.begin(), kernels.end(), [&graph](size_t a, size_t b) {
    return graph.operations[a].time_ns > graph.operations[b].time_ns;
  });
  kernels.resize(std::min(kernels.size(), kLongestShown));
  cli::Rows rows = {{"  kernel", "blocks", "threads", "stream", "time", "of all"}};
  for (const size_t i : kernels) {
    const Operation& kernel = graph.operations[i];
    const double part = graph.sum_ns == 0 ? 0
                                          : 100.0 * static_cast<double>(kernel.time_ns) /
                                                static_cast<double>(graph.sum_ns);
    rows.push_back({absl::StrCat(graph.critical[i] ? "* " : "  ", NameOf(kernel, kLetters)),
                    SizesText(kernel.blocks), SizesText(kernel.threads), StreamName(kernel.slot),
                    DurationText(kernel.time_ns), absl::StrFormat("%.1f %%", part)});
  }
  return absl::StrCat("\nlongest kernels, by ", TimeName(caption), " (*: on the critical path)\n",
                      cli::Table(rows, 1));
}

// Each reason once for each kernel.
std::string UnknownText(const IterationGraph& graph) {
  std::vector<std::pair<std::string, int>> found;  // by first use
  std::map<std::string, size_t> places;
  for (const Operation& operation : graph.operations) {
    if (operation.unknown.empty()) continue;
    const std::string line =
        absl::StrCat(NameOf(operation, kLetters), ": ", cli::Printable(operation.unknown));
    const auto [place, is_new] = places.try_emplace(line, found.size());
    if (is_new) found.emplace_back(line, 0);
    ++found[place->second].second;
  }
  if (found.empty()) return "";
  std::string text = "\nmemory not known, so they keep their place in the program's order\n";
  for (size_t i = 0; i < std::min(found.size(), kUnknownShown); ++i)
    absl::StrAppend(&text, "  ", found[i].second, " x ", found[i].first, "\n");
  if (found.size() > kUnknownShown)
    absl::StrAppend(&text, "  and ", found.size() - kUnknownShown, " more; --json has all\n");
  return text;
}

}  // namespace

std::string SummaryText(const IterationGraph& graph, const Caption& caption) {
  return absl::StrCat("one iteration of job ", caption.job, ", session ", caption.session, ": ",
                      cli::Printable(caption.program), "\n",
                      cli::Table({{"  operations", KindsText(graph)},
                                  {"  program's", StreamsText(graph)},
                                  {"  dependencies", DependenciesText(graph)},
                                  {"  concurrency", ConcurrencyText(graph)},
                                  {"  critical path", PathText(graph, caption)}},
                                 2),
                      LongestText(graph, caption), UnknownText(graph));
}

}  // namespace graph
