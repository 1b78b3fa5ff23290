// Translates the program's handles to graphs and nodes, and CUDA's parameter structures to work of
// nodes. The graph*.cc files beside this one share these functions. Thread safety: any thread.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "shim/graphs/executable.h"
#include "shim/graphs/graph.h"

namespace local {

using shim::graphs::Executable;
using shim::graphs::Graph;
using shim::graphs::Node;
using shim::graphs::Objects;
using shim::graphs::UserObject;
using shim::graphs::Work;

// 1 for what is none; the session's failure first.
CUresult FindGraph(CUgraph program, std::shared_ptr<Graph>* graph);
CUresult FindNode(CUgraphNode program, std::shared_ptr<Node>* node);
CUresult FindNodes(const CUgraphNode* programs, size_t count, std::vector<Node*>* nodes);
CUresult FindExec(CUgraphExec program, std::shared_ptr<Executable>* executable);

inline CUgraphNode HandleOf(const Node& node) { return reinterpret_cast<CUgraphNode>(node.name()); }
inline CUgraph HandleOf(const Graph& graph) { return reinterpret_cast<CUgraph>(graph.name()); }
using shim::graphs::ResultOf;
inline CUresult Fail(CUresult code, const char*) { return code; }  // the text is the bare device's

// With the checks of the call that does the same at once.
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
CUresult SetWork(CUgraphNode program, Work work);
// The executable graph knows its nodes by their values: the node itself may be gone.
CUresult SetExecWork(CUgraphExec program, CUgraphNode node, Work work);

// Finds the node and its work of type T.
template <class T>
CUresult FindWork(CUgraphNode program, std::shared_ptr<Node>* node, T** work) {
  const CUresult result = FindNode(program, node);
  if (result != CUDA_SUCCESS) return result;
  *work = std::get_if<T>(&(*node)->content.work);
  return *work != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace local
