#include "cli/graph/graph_json.h"

#include <nlohmann/json.hpp>

namespace graph {
namespace {

using Json = nlohmann::ordered_json;
using scheduler::streams::Access;
using scheduler::streams::At;
using Kind = Operation::Kind;

const char* NameOfKind(Kind kind) {
  switch (kind) {
    case Kind::kKernel:
      return "kernel";
    case Kind::kCopy:
      return "copy";
    case Kind::kFill:
      return "fill";
    case Kind::kLibrary:
      return "library";
    case Kind::kGraph:
      return "graph";
    case Kind::kHostFunction:
      return "host_function";
    case Kind::kHostWait:
      return "host_wait";
  }
  return "?";
}

Json JsonOf(const Touch& touch) {
  const char* const use = touch.access == Access::kRead    ? "reads"
                          : touch.access == Access::kWrite ? "writes"
                                                           : "updates";
  return {{"use", use}, {"address", touch.range.begin}, {"bytes", touch.range.bytes}};
}

Json JsonOf(const IterationGraph& graph, NodeId node) {
  const Operation& operation = graph.operations[At(node)];
  Json json = {{"kind", NameOfKind(operation.kind)}, {"name", operation.name}};
  json["critical"] = graph.critical[At(node)] ? true : false;
  if (!graph.IsWork(node)) return json;
  json["program_stream"] = StreamName(operation.slot);
  json["stream"] = graph.assignment.stream[At(node)];
  if (operation.time_ns >= 0) json["time_ns"] = operation.time_ns;
  if (operation.kind == Kind::kKernel) {
    json["blocks"] = operation.blocks;
    json["threads"] = operation.threads;
  }
  if (!operation.unknown.empty()) {
    json["unknown"] = operation.unknown;
    return json;
  }
  json["touches"] = Json::array();
  for (const Touch& touch : operation.touches) json["touches"].push_back(JsonOf(touch));
  return json;
}

Json JsonOfEdges(const IterationGraph& graph) {
  Json edges = Json::array();
  for (NodeId node = 0; node < graph.dag.nodes(); ++node) {
    for (const NodeId after : graph.dag.Successors(node)) {
      edges.push_back({{"from", node},
                       {"to", after},
                       {"synchronisation", IsSynchronisation(graph, node, after)}});
    }
  }
  return edges;
}

}  // namespace

std::string GraphJson(const IterationGraph& graph, const Caption& caption) {
  Json json = {{"job", caption.job},
               {"session", caption.session},
               {"program", caption.program},
               {"virtual_time", caption.virtual_time},
               {"program_streams", graph.slots.size()},
               {"event_waits", graph.event_waits},
               {"joins", graph.joins},
               {"streams", graph.streams},
               {"synchronisations", graph.synchronisations},
               {"critical_path_operations", graph.path_operations},
               {"timed_operations", graph.timed}};
  if (graph.timed != 0) {
    json["critical_path_ns"] = graph.path_ns;
    json["sum_ns"] = graph.sum_ns;
  }
  json["nodes"] = Json::array();
  for (NodeId node = 0; node < graph.dag.nodes(); ++node)
    json["nodes"].push_back(JsonOf(graph, node));
  json["edges"] = JsonOfEdges(graph);
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace graph
