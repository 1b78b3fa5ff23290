#include "cli/graph/labels.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/drawing.h"
#include "cli/table.h"
#include "ipc/call_trace.h"
#include "ipc/calls/limits.h"
#include "replay/kernel_report.h"

namespace graph {
namespace {

// One part of a colour, as CSS defines hsl().
int PartOf(const report::Hsl& colour, int offset) {
  const double lightness = colour.lightness / 100.0;
  const double strength = colour.saturation / 100.0 * std::min(lightness, 1 - lightness);
  const double k = std::fmod(offset + colour.hue / 30.0, 12);
  const double part = lightness - strength * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
  return static_cast<int>(std::lround(part * 255));
}

}  // namespace

std::string NameOf(const Operation& operation, size_t letters) {
  std::string name = operation.kind == Operation::Kind::kKernel
                         ? replay::ReadableKernelName(operation.name)
                         : operation.name;
  name = cli::Printable(name);
  if (name.size() <= letters) return name;
  // Not in the middle of a letter of several bytes.
  size_t end = letters - 2;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
  return name.substr(0, end) + "..";
}

std::string DurationText(int64_t ns) {
  if (ns < 0) return "?";
  const double us = static_cast<double>(ns) / 1000;
  if (us < 1000) return absl::StrFormat("%.1f us", us);
  if (us < 1'000'000) return absl::StrFormat("%.2f ms", us / 1000);
  return absl::StrFormat("%.2f s", us / 1'000'000);
}

const char* TimeName(const Caption& caption) {
  return caption.virtual_time ? "virtual time, a model's" : "device time";
}

std::string Counted(int64_t count, const char* one, const char* several) {
  return absl::StrCat(count, " ", count == 1 ? one : several);
}

std::string StreamName(uint32_t slot) {
  if (slot == ipc::kNoTraceSlot) return "-";
  return slot < ipc::limits::kLegacySlots ? "default"
                                          : absl::StrCat(slot - ipc::limits::kLegacySlots + 1);
}

bool ColouredByProgram(const IterationGraph& graph) { return graph.slots.size() > 1; }

int ToneOf(const IterationGraph& graph, NodeId node) {
  if (!graph.IsWork(node)) return -1;
  if (!ColouredByProgram(graph)) return graph.assignment.stream[scheduler::streams::At(node)];
  const uint32_t slot = graph.operations[scheduler::streams::At(node)].slot;
  return static_cast<int>(std::find(graph.slots.begin(), graph.slots.end(), slot) -
                          graph.slots.begin());
}

bool IsSynchronisation(const IterationGraph& graph, NodeId from, NodeId to) {
  if (!graph.IsWork(from) || !graph.IsWork(to)) return true;
  const std::vector<int>& stream = graph.assignment.stream;
  return stream[scheduler::streams::At(from)] != stream[scheduler::streams::At(to)];
}

std::string ColourCode(int tone) {
  if (tone < 0) return "#d0d0d0";
  report::Hsl colour = report::ColourOfTone(tone);
  colour.lightness += (100 - colour.lightness) / 2;
  return absl::StrFormat("#%02x%02x%02x", PartOf(colour, 0), PartOf(colour, 8), PartOf(colour, 4));
}

std::string SizesText(const uint32_t (&sizes)[3]) {
  size_t shown = 3;
  while (shown > 1 && sizes[shown - 1] == 1) --shown;
  std::string text = absl::StrCat(sizes[0]);
  for (size_t i = 1; i < shown; ++i) absl::StrAppend(&text, " x ", sizes[i]);
  return text;
}

}  // namespace graph
