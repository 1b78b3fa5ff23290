#include "tests/daemon/worker/launch_graphs.h"

#include <algorithm>
#include <cstring>

#include "ipc/message.h"

namespace worker {
namespace {

// Made at its first use: tests name it before main() begins.
LaunchGraphs& Graphs() {
  static LaunchGraphs graphs;
  return graphs;
}

Ran RanOf(const CUDA_KERNEL_NODE_PARAMS& params) {
  Ran ran{.function = reinterpret_cast<uintptr_t>(params.func)};
  if (params.extra != nullptr) std::memcpy(&ran.argument, params.extra[1], sizeof ran.argument);
  return ran;
}
CUresult Create(CUgraph* graph, unsigned) {
  *graph = reinterpret_cast<CUgraph>(Graphs().next);
  Graphs().alive.insert(Graphs().next++);
  return CUDA_SUCCESS;
}
CUresult Destroy(CUgraph graph) {
  Graphs().alive.erase(reinterpret_cast<uintptr_t>(graph));
  return CUDA_SUCCESS;
}
CUresult AddNode(const Ran& ran, CUgraph graph, CUgraphNode* node) {
  if (Graphs().add != CUDA_SUCCESS) return Graphs().add;
  Graphs().nodes[Graphs().next] = ran;
  Graphs().graphs[reinterpret_cast<uintptr_t>(graph)].push_back(Graphs().next);
  *node = reinterpret_cast<CUgraphNode>(Graphs().next++);
  return CUDA_SUCCESS;
}
CUresult AddKernel(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                   const CUDA_KERNEL_NODE_PARAMS* params) {
  return AddNode(RanOf(*params), graph, node);
}
CUresult AddFill(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                 const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext) {
  return AddNode({.function = kFill, .argument = params->value}, graph, node);
}
CUresult AddCopy(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                 const CUDA_MEMCPY3D* params, CUcontext) {
  const uint32_t bytes = static_cast<uint32_t>(params->WidthInBytes);
  return AddNode({.function = kCopy, .argument = bytes}, graph, node);
}
CUresult AddEdges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                  const CUgraphEdgeData*, size_t count) {
  const std::vector<uintptr_t>& nodes = Graphs().graphs[reinterpret_cast<uintptr_t>(graph)];
  const auto place = [&](CUgraphNode node) {
    const auto at = std::find(nodes.begin(), nodes.end(), reinterpret_cast<uintptr_t>(node));
    return static_cast<size_t>(at - nodes.begin());
  };
  Graphs().edges.clear();
  for (size_t i = 0; i < count; ++i) Graphs().edges.emplace_back(place(from[i]), place(to[i]));
  return CUDA_SUCCESS;
}
CUresult Instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  ++Graphs().instantiated;
  Graphs().graphs[Graphs().next] = Graphs().graphs[reinterpret_cast<uintptr_t>(graph)];
  Graphs().alive.insert(Graphs().next);
  *exec = reinterpret_cast<CUgraphExec>(Graphs().next++);
  return CUDA_SUCCESS;
}
CUresult SetKernel(CUgraphExec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  ++Graphs().set;
  if (Graphs().change == CUDA_SUCCESS)
    Graphs().nodes[reinterpret_cast<uintptr_t>(node)] = RanOf(*params);
  return Graphs().change;
}
CUresult Launch(CUgraphExec exec, CUstream stream) {
  if (Graphs().launch != CUDA_SUCCESS) return Graphs().launch;
  for (const uintptr_t node : Graphs().graphs[reinterpret_cast<uintptr_t>(exec)]) {
    Graphs().ran.push_back(Graphs().nodes[node]);
    Graphs().ran.back().stream = reinterpret_cast<uintptr_t>(stream);
    if (Graphs().run != nullptr) Graphs().run(Graphs().ran.back());
  }
  return CUDA_SUCCESS;
}
CUresult DestroyExec(CUgraphExec exec) {
  Graphs().alive.erase(reinterpret_cast<uintptr_t>(exec));
  return CUDA_SUCCESS;
}

}  // namespace

LaunchGraphs& FreshLaunchGraphs() { return Graphs() = LaunchGraphs(); }

void AddLaunchGraphs(ipc::DriverTable* table) {
  table->cuGraphCreate = &Create;
  table->cuGraphDestroy = &Destroy;
  table->cuGraphAddKernelNode_v2 = &AddKernel;
  table->cuGraphAddMemsetNode = &AddFill;
  table->cuGraphAddMemcpyNode = &AddCopy;
  table->cuGraphAddDependencies_v2 = &AddEdges;
  table->cuGraphInstantiateWithFlags = &Instantiate;
  table->cuGraphExecKernelNodeSetParams_v2 = &SetKernel;
  table->cuGraphLaunch = &Launch;
  table->cuGraphExecDestroy = &DestroyExec;
}

void AppendStep(const Named& named, std::vector<std::byte>* messages) {
  ipc::MessageHeader header;
  header.op = static_cast<uint16_t>(named.op);
  header.bytes = static_cast<uint32_t>(sizeof header + sizeof named + named.bytes_more);
  const size_t at = messages->size();
  messages->resize(at + ipc::PaddedBytes(header.bytes));
  std::memcpy(messages->data() + at, &header, sizeof header);
  std::memcpy(messages->data() + at + sizeof header, &named, sizeof named);
}

}  // namespace worker
