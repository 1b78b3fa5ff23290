#include "softgpu/driver/graph_node_work.h"

#include <vector>

#include "softgpu/driver/graph_exec.h"

namespace softgpu {

CUresult AddWork(const NodePlace& place, Work work) {
  std::shared_ptr<Graph> graph;
  std::vector<GraphNode*> dependencies;
  if (place.out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindGraph(place.graph, &graph);
  if (result == CUDA_SUCCESS) result = FindNodes(place.dependencies, place.count, &dependencies);
  if (result != CUDA_SUCCESS) return result;
  GraphNode* node = nullptr;
  result = graph->Add(std::move(work), dependencies, &node);
  if (result == CUDA_SUCCESS) *place.out = node->handle();
  return result;
}

CUresult SetWork(CUgraphNode handle, Work work) {
  std::shared_ptr<GraphNode> node;
  const CUresult result = FindNode(handle, &node);
  if (result != CUDA_SUCCESS) return result;
  if (node->work.index() != work.index()) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the node is of another type");
  }
  node->param_pointers.clear();
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

CUresult SetExecWork(CUgraphExec handle, CUgraphNode node, Work work) {
  std::shared_ptr<GraphExec> exec;
  const CUresult result = FindExec(handle, &exec);
  if (result != CUDA_SUCCESS) return result;
  return exec->SetWork(reinterpret_cast<const GraphNode*>(node), std::move(work));
}

}  // namespace softgpu
