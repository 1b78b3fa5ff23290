// Lookups and conversions that the api_graph*.cc files share.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "softgpu/driver/error_log.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_exec.h"

namespace softgpu {

CUresult FindGraph(CUgraph handle, std::shared_ptr<Graph>* graph);
CUresult FindNode(CUgraphNode handle, std::shared_ptr<GraphNode>* node);
CUresult FindNodes(const CUgraphNode* handles, size_t count, std::vector<GraphNode*>* nodes);
CUresult FindExec(CUgraphExec handle, std::shared_ptr<GraphExec>* exec);

// From the parameter structures to work, with the checks of the call that does the same at once.
CUresult ToWork(const CUDA_KERNEL_NODE_PARAMS_v2& params, Work* work);
CUresult ToWork(const CUDA_KERNEL_NODE_PARAMS_v1& params, Work* work);
CUresult ToWork(const CUDA_MEMCPY3D& params, Work* work);
CUresult ToWork(const CUDA_MEMSET_NODE_PARAMS_v1& params, Work* work);
CUresult ToWork(const CUDA_HOST_NODE_PARAMS_v1& params, Work* work);
CUresult ToWork(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& params, Work* work);
CUresult ToWork(const CUgraphNodeParams& params, Work* work);
CUresult ToRecord(CUevent event, Work* work);
CUresult ToWait(CUevent event, Work* work);
CUresult ToChild(CUgraph graph, Work* work);

// Where a new node goes.
struct NodePlace {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* dependencies;
  size_t count;
};

CUresult AddWork(const NodePlace& place, Work work);
CUresult SetWork(CUgraphNode handle, Work work);
// The executable graph knows its nodes by their handles: the node itself may be gone.
CUresult SetExecWork(CUgraphExec handle, CUgraphNode node, Work work);

// Finds the node and its work of type T.
template <class T>
CUresult FindWork(CUgraphNode handle, std::shared_ptr<GraphNode>* node, T** work) {
  const CUresult result = FindNode(handle, node);
  if (result != CUDA_SUCCESS) return result;
  *work = std::get_if<T>(&(*node)->content.work);
  return *work != nullptr ? CUDA_SUCCESS
                          : Fail(CUDA_ERROR_INVALID_VALUE, "the node is of another type");
}

}  // namespace softgpu
