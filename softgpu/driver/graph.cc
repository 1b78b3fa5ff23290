#include "softgpu/driver/graph.h"

#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"

namespace softgpu {

std::shared_ptr<Graph>* GraphUse::ChildIn(NodeContent* content) {
  ChildWork* const child = std::get_if<ChildWork>(&content->work);
  return child != nullptr ? &child->graph : nullptr;
}

std::shared_ptr<GraphConditional> GraphUse::ConditionalIn(const NodeContent& content) {
  const ConditionalWork* const conditional = std::get_if<ConditionalWork>(&content.work);
  return conditional != nullptr ? conditional->node : nullptr;
}

bool GraphUse::MayBeInBody(const NodeContent& content) {
  const Work& work = content.work;
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<MemcpyWork>(work) ||
         std::holds_alternative<MemsetWork>(work) || std::holds_alternative<EmptyWork>(work) ||
         std::holds_alternative<ChildWork>(work) || std::holds_alternative<ConditionalWork>(work);
}

uint64_t GraphUse::Enter(const std::shared_ptr<Graph>& graph) {
  return reinterpret_cast<uint64_t>(Driver::Get().graphs.Add(graph));
}

uint64_t GraphUse::Enter(const std::shared_ptr<GraphNode>& node) {
  return reinterpret_cast<uint64_t>(Driver::Get().graph_nodes.Add(node));
}

void GraphUse::Leave(const Graph& graph) { Driver::Get().graphs.Remove(&graph); }
void GraphUse::Leave(const GraphNode& node) { Driver::Get().graph_nodes.Remove(&node); }

CUresult ResultOf(graphs::Refusal refusal) {
  if (refusal == graphs::Refusal::kNone) return CUDA_SUCCESS;
  return Fail(static_cast<CUresult>(graphs::CodeOf(refusal)), graphs::TextOf(refusal));
}

}  // namespace softgpu
