#include "tests/shim/fake_graphs.h"

#include <cstddef>
#include <cstring>

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
CUresult CreateHandle(CUgraphConditionalHandle* handle, CUgraph, CUcontext, unsigned, unsigned) {
  *handle = FakeGraphs::kHandle;
  return CUDA_SUCCESS;
}
// Its bodies are graphs as all others.
CUresult AddConditional(CUgraphNode* node, CUgraph graph, const CUgraphNode*,
                        const CUgraphEdgeData*, size_t, CUgraphNodeParams* params) {
  static thread_local std::vector<CUgraph> bodies;
  bodies.clear();
  for (unsigned i = 0; i < params->conditional.size; ++i) bodies.push_back(NewHandle<CUgraph>());
  params->conditional.phGraph_out = bodies.data();
  *node = FakeGraphs::Process().AddNode(graph);
  return CUDA_SUCCESS;
}
// The kernels of the tests have a first parameter of 8 bytes.
CUresult AddKernel(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                   const CUDA_KERNEL_NODE_PARAMS* params) {
  *node = FakeGraphs::Process().AddNode(graph);
  if (params->extra == nullptr) return CUDA_SUCCESS;
  uint64_t word = 0;
  std::memcpy(&word, params->extra[1], sizeof word);
  FakeGraphs::Process().AddWord(word);
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

void FakeGraphs::AddWord(uint64_t word) {
  const base::MutexLock lock(&mutex_);
  words_.push_back(word);
}

std::vector<uint64_t> FakeGraphs::TakeWords() {
  const base::MutexLock lock(&mutex_);
  return std::exchange(words_, {});
}

void AddGraphs(ipc::DriverTable* table) {
  table->cuGraphCreate = &CreateGraph;
  table->cuGraphConditionalHandleCreate = &CreateHandle;
  table->cuGraphAddNode_v2 = &AddConditional;
  table->cuGraphAddKernelNode_v2 = &AddKernel;
  table->cuGraphAddMemsetNode = &AddNode;
  table->cuGraphAddMemcpyNode = &AddNode;
  table->cuGraphAddEmptyNode = &AddNode;
  table->cuGraphAddChildGraphNode = &AddNode;
  table->cuGraphAddDependencies_v2 = &AddEdges;
  table->cuGraphInstantiateWithFlags = &Instantiate;
}

}  // namespace shim_test
