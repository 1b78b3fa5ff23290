#include "shim/graphs/graph.h"

#include <iterator>

namespace shim::graphs {

CUgraphNodeType TypeOf(const Work& work) {
  // By the order of Work's alternatives.
  static constexpr CUgraphNodeType kTypes[] = {
      CU_GRAPH_NODE_TYPE_KERNEL,       CU_GRAPH_NODE_TYPE_MEMCPY,
      CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_HOST,
      CU_GRAPH_NODE_TYPE_GRAPH,        CU_GRAPH_NODE_TYPE_EMPTY,
      CU_GRAPH_NODE_TYPE_WAIT_EVENT,   CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_KERNEL,
      CU_GRAPH_NODE_TYPE_MEM_ALLOC,    CU_GRAPH_NODE_TYPE_MEM_FREE,
      CU_GRAPH_NODE_TYPE_CONDITIONAL};
  static_assert(std::size(kTypes) == std::variant_size_v<Work>);
  return kTypes[work.index()];
}

Objects& Objects::Process() {
  static Objects* const objects = new Objects;
  return *objects;
}

std::shared_ptr<Graph>* GraphUse::ChildIn(NodeContent* content) {
  ChildWork* const child = std::get_if<ChildWork>(&content->work);
  return child != nullptr ? &child->graph : nullptr;
}

std::shared_ptr<::graphs::Conditional<GraphUse>> GraphUse::ConditionalIn(
    const NodeContent& content) {
  const ConditionalWork* const conditional = std::get_if<ConditionalWork>(&content.work);
  return conditional != nullptr ? conditional->node : nullptr;
}

bool GraphUse::MayBeInBody(const NodeContent& content) {
  const Work& work = content.work;
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<MemcpyWork>(work) ||
         std::holds_alternative<MemsetWork>(work) || std::holds_alternative<EmptyWork>(work) ||
         std::holds_alternative<ChildWork>(work) || std::holds_alternative<LibraryWork>(work) ||
         std::holds_alternative<ConditionalWork>(work);
}

uint64_t GraphUse::Enter(const std::shared_ptr<Graph>& graph) {
  return Objects::Process().graphs.Add(graph);
}

uint64_t GraphUse::Enter(const std::shared_ptr<Node>& node) {
  return Objects::Process().nodes.Add(node);
}

void GraphUse::Leave(const Graph& graph) { Objects::Process().graphs.Remove(graph.name()); }
void GraphUse::Leave(const Node& node) { Objects::Process().nodes.Remove(node.name()); }

}  // namespace shim::graphs
