#include "tests/shim/fake_graphs.h"

#include <cstddef>

#include "tests/shim/fake_driver.h"

namespace shim_test {
namespace {

uint32_t NumberOf(CUgraphNode node) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(node) - 1);
}

CUresult CreateGraph(CUgraph* graph, unsigned) {
  *graph = NewHandle<CUgraph>();
  return CUDA_SUCCESS;
}
// A node of any kind.
template <class... What>
CUresult AddNode(CUgraphNode* node, CUgraph graph, What...) {
  *node = FakeGraphs::Process().AddNode(graph);
  return CUDA_SUCCESS;
}
CUresult AddEdges(CUgraph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*,
                  size_t count) {
  FakeGraphs::Process().AddEdges({from, count}, {to, count});
  return CUDA_SUCCESS;
}
CUresult Instantiate(CUgraphExec* exec, CUgraph, unsigned long long) {
  const CUresult fault = TakeFault("cuGraphInstantiateWithFlags");
  if (fault == CUDA_SUCCESS) *exec = NewHandle<CUgraphExec>();
  return fault;
}

}  // namespace

FakeGraphs& FakeGraphs::Process() {
  static FakeGraphs* const graphs = new FakeGraphs;
  return *graphs;
}

CUgraphNode FakeGraphs::AddNode(CUgraph graph) {
  const base::MutexLock lock(&mutex_);
  return reinterpret_cast<CUgraphNode>(++nodes_[graph]);
}

void FakeGraphs::AddEdges(std::span<const CUgraphNode> from, std::span<const CUgraphNode> to) {
  const base::MutexLock lock(&mutex_);
  for (size_t i = 0; i < from.size(); ++i) edges_.emplace_back(NumberOf(from[i]), NumberOf(to[i]));
}

std::vector<FakeGraphs::Edge> FakeGraphs::TakeEdges() {
  const base::MutexLock lock(&mutex_);
  return std::exchange(edges_, {});
}

void AddGraphs(ipc::DriverTable* table) {
  table->cuGraphCreate = &CreateGraph;
  table->cuGraphAddKernelNode_v2 = &AddNode;
  table->cuGraphAddMemsetNode = &AddNode;
  table->cuGraphAddMemcpyNode = &AddNode;
  table->cuGraphAddEmptyNode = &AddNode;
  table->cuGraphAddChildGraphNode = &AddNode;
  table->cuGraphAddDependencies_v2 = &AddEdges;
  table->cuGraphInstantiateWithFlags = &Instantiate;
}

}  // namespace shim_test
