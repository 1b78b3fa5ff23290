// Records of a job's work as a hostile client may write them. The first byte names the track: 0 is
// that of sent messages, any other number that of images. Whatever the records are, the graph of
// any iteration among them can be made and drawn: texts of a program end no string and begin no
// tag.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/graph/dot.h"
#include "cli/graph/graph_json.h"
#include "cli/graph/iteration.h"
#include "cli/graph/iteration_graph.h"
#include "cli/graph/operations.h"
#include "cli/graph/records.h"
#include "cli/graph/summary.h"
#include "cli/graph/svg.h"

namespace {

void DrawUntrusted(std::span<const graph::Record> records) {
  const graph::Prove prove = [](const graph::SentCall& launch) {
    graph::Touched touched;
    for (const graph::Range& range : launch.ranges)
      touched.touches.push_back({range, scheduler::streams::Access::kUpdate});
    if (launch.ranges.empty()) touched.unknown = launch.kernel;
    return touched;
  };
  const std::optional<graph::IterationGraph> made =
      graph::MakeGraph(graph::OperationsOf(records, {{1, 1}, {2, 7}}, prove));
  if (!made.has_value()) std::abort();
  const graph::Caption caption{.job = 1, .program = "p"};
  const std::string svg = graph::GraphSvg(*made, caption), dot = graph::DotText(*made, caption);
  if (svg.find("<script") != std::string::npos || dot.find('\x1b') != std::string::npos)
    std::abort();
  if (graph::SummaryText(*made, caption).find('\x1b') != std::string::npos) std::abort();
  if (!nlohmann::json::parse(graph::GraphJson(*made, caption), nullptr, false).is_object())
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  uint64_t unreadable = 0;
  if (data[0] != 0) {
    graph::Images images;
    if (graph::DecodeImagesUntrusted(bytes, &images, &unreadable) > bytes.size()) std::abort();
    for (const auto& [hash, image] : images) {
      if (image.bytes.size() > bytes.size()) std::abort();
    }
    return 0;
  }
  std::vector<graph::Record> records;
  if (graph::DecodeRecordsUntrusted(bytes, &records, &unreadable) > bytes.size()) std::abort();
  if (records.size() > 256) return 0;
  DrawUntrusted(records);
  DrawUntrusted(graph::FirstWholeIteration(records));
  return 0;
}
