// Adding nodes and changing their work, in a graph and in an executable graph: one path for every
// type.
#pragma once

#include <cuda.h>

#include <memory>
#include <utility>

#include "softgpu/driver/error_log.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_handles.h"

namespace softgpu {

// Where a new node goes.
struct NodePlace {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* dependencies;
  size_t count;
};

CUresult AddWork(const NodePlace& place, Work work);
CUresult SetWork(CUgraphNode handle, Work work);
// The executable graph knows its nodes by identity: the node itself may be gone.
CUresult SetExecWork(CUgraphExec handle, CUgraphNode node, Work work);

// Finds the node and its work of type T.
template <class T>
CUresult FindWork(CUgraphNode handle, std::shared_ptr<GraphNode>* node, T** work) {
  const CUresult result = FindNode(handle, node);
  if (result != CUDA_SUCCESS) return result;
  *work = std::get_if<T>(&(*node)->work);
  return *work != nullptr ? CUDA_SUCCESS
                          : Fail(CUDA_ERROR_INVALID_VALUE, "the node is of another type");
}

}  // namespace softgpu
