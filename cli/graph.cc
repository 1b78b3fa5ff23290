#include "cli/graph.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/graph/dot.h"
#include "cli/graph/graph_json.h"
#include "cli/graph/iteration_graph.h"
#include "cli/graph/operations.h"
#include "cli/graph/summary.h"
#include "cli/graph/svg.h"
#include "cli/job_work.h"
#include "cli/table.h"
#include "cli/trace.h"
#include "ipc/job_options.h"
#include "replay/run_prover.h"

namespace cli {
namespace {

constexpr uint64_t kDefaultPeriodUs = 10'000'000;

// Proves what launches touch from the images and the memory that the job has told of. The kernels'
// PTX is a client's word: it may be wrong about itself alone.
class LaunchProver {
 public:
  explicit LaunchProver(const graph::Images* images) : images_(*images) {}

  graph::Touched Prove(const graph::SentCall& launch) {
    const auto image = images_.find(launch.image);
    if (image == images_.end() || !image->second.complete)
      return Unknown("its module did not come");
    if (image->second.bytes.empty()) return Unknown("its module is not kept, or too large");
    replay::LaunchToProve proof;
    proof.module = launch.module;
    proof.content = launch.image;
    proof.image = std::as_bytes(std::span(image->second.bytes));
    proof.kernel = launch.kernel;
    for (size_t i = 0; i < 3; ++i) {
      proof.grid.blocks[i] = static_cast<uint32_t>(launch.arguments[1 + i]);
      proof.grid.threads[i] = static_cast<uint32_t>(launch.arguments[4 + i]);
    }
    proof.parameters = launch.parameters;
    replay::LaunchTouches touches = prover_->Touches(
        proof,
        {.allocation = [&launch](uint64_t address) { return RangeIn(launch, address); },
         .variable = [&launch](uint64_t,
                               const std::string& name) { return VariableIn(launch, name); }});
    return {std::move(touches.touches), std::move(touches.unknown)};
  }

 private:
  static graph::Touched Unknown(const char* why) { return {.touches = {}, .unknown = why}; }

  static std::optional<replay::Range> RangeIn(const graph::SentCall& launch, uint64_t address) {
    for (const graph::Range& range : launch.ranges) {
      if (address - range.begin < range.bytes) return range;
    }
    return std::nullopt;
  }

  static std::optional<replay::Range> VariableIn(const graph::SentCall& launch,
                                                 const std::string& name) {
    for (const auto& [known, range] : launch.variables) {
      if (known == name) return range;
    }
    return std::nullopt;
  }

  const graph::Images& images_;
  const std::unique_ptr<replay::RunProver> prover_ = replay::MakeRunProver();
};

// True when lanewayd has a device in virtual time (docs/virtual_time.md).
bool HasVirtualTime(const Request& request) {
  const absl::StatusOr<std::string> status = AskDaemon(request, R"({"command":"status"})");
  if (!status.ok()) return false;
  const nlohmann::json json = nlohmann::json::parse(*status, nullptr, false);
  if (!json.is_object() || !json.value("devices", nlohmann::json()).is_array()) return false;
  for (const nlohmann::json& device : json["devices"]) {
    if (device.value("name", "").find("(virtual time)") != std::string::npos) return true;
  }
  return false;
}

int Show(const Request& request, const graph::IterationGraph& graph,
         const graph::Caption& caption) {
  const GraphFiles& files = request.graph;
  absl::Status written;
  if (!files.svg.empty()) written = WriteText(files.svg, graph::GraphSvg(graph, caption));
  if (!files.dot.empty()) written = WriteText(files.dot, graph::DotText(graph, caption));
  if (request.json) written = WriteText("", graph::GraphJson(graph, caption) + "\n");
  if (files.svg.empty() && files.dot.empty() && !request.json)
    written = WriteText("", graph::SummaryText(graph, caption));
  return written.ok() ? 0 : Say(1, std::string(written.message()));
}

}  // namespace

int Graph(const Request& request) {
  const std::optional<uint64_t> for_us = request.watched.period.empty()
                                             ? kDefaultPeriodUs
                                             : ipc::ParseDurationUs(request.watched.period);
  if (!for_us.has_value() || *for_us == 0)
    return Say(2, absl::StrCat("--for takes a time such as 10s or 500ms, not ",
                               Printable(request.watched.period)));
  absl::StatusOr<TracedIteration> traced = TraceIteration(request, static_cast<int64_t>(*for_us));
  if (!traced.ok()) return Say(1, std::string(traced.status().message()));
  LaunchProver prover(&traced->images);
  const std::optional<graph::IterationGraph> graph = graph::MakeGraph(graph::OperationsOf(
      traced->records, traced->times_ns,
      [&prover](const graph::SentCall& launch) { return prover.Prove(launch); }));
  if (!graph.has_value()) {
    return Say(
        1, absl::StrCat("an iteration of job ", request.id,
                        " has more operations than can be drawn: ", scheduler::streams::kNodesMax));
  }
  return Show(request, *graph,
              {.job = request.id,
               .session = traced->session,
               .program = traced->program,
               .virtual_time = HasVirtualTime(request)});
}

}  // namespace cli
