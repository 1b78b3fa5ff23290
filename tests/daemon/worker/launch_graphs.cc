#include "tests/daemon/worker/launch_graphs.h"

#include <algorithm>
#include <cstring>

#include "ipc/message.h"

namespace worker {
namespace {

LaunchGraphs fake;

Ran RanOf(const CUDA_KERNEL_NODE_PARAMS& params) {
  Ran ran{.function = reinterpret_cast<uintptr_t>(params.func)};
  if (params.extra != nullptr) std::memcpy(&ran.argument, params.extra[1], sizeof ran.argument);
  return ran;
}
CUresult Create(CUgraph* graph, unsigned) {
  *graph = reinterpret_cast<CUgraph>(fake.next);
  fake.alive.insert(fake.next++);
  return CUDA_SUCCESS;
}
CUresult Destroy(CUgraph graph) {
  fake.alive.erase(reinterpret_cast<uintptr_t>(graph));
  return CUDA_SUCCESS;
}
CUresult AddKernel(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                   const CUDA_KERNEL_NODE_PARAMS* params) {
  if (fake.add != CUDA_SUCCESS) return fake.add;
  fake.nodes[fake.next] = RanOf(*params);
  fake.graphs[reinterpret_cast<uintptr_t>(graph)].push_back(fake.next);
  *node = reinterpret_cast<CUgraphNode>(fake.next++);
  return CUDA_SUCCESS;
}
CUresult AddEdges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                  const CUgraphEdgeData*, size_t count) {
  const std::vector<uintptr_t>& nodes = fake.graphs[reinterpret_cast<uintptr_t>(graph)];
  const auto place = [&](CUgraphNode node) {
    const auto at = std::find(nodes.begin(), nodes.end(), reinterpret_cast<uintptr_t>(node));
    return static_cast<size_t>(at - nodes.begin());
  };
  fake.edges.clear();
  for (size_t i = 0; i < count; ++i) fake.edges.emplace_back(place(from[i]), place(to[i]));
  return CUDA_SUCCESS;
}
CUresult Instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  ++fake.instantiated;
  fake.graphs[fake.next] = fake.graphs[reinterpret_cast<uintptr_t>(graph)];
  fake.alive.insert(fake.next);
  *exec = reinterpret_cast<CUgraphExec>(fake.next++);
  return CUDA_SUCCESS;
}
CUresult SetKernel(CUgraphExec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  ++fake.set;
  if (fake.change == CUDA_SUCCESS) fake.nodes[reinterpret_cast<uintptr_t>(node)] = RanOf(*params);
  return fake.change;
}
CUresult Launch(CUgraphExec exec, CUstream stream) {
  if (fake.launch != CUDA_SUCCESS) return fake.launch;
  for (const uintptr_t node : fake.graphs[reinterpret_cast<uintptr_t>(exec)]) {
    fake.ran.push_back(fake.nodes[node]);
    fake.ran.back().stream = reinterpret_cast<uintptr_t>(stream);
    if (fake.run != nullptr) fake.run(fake.ran.back());
  }
  return CUDA_SUCCESS;
}
CUresult DestroyExec(CUgraphExec exec) {
  fake.alive.erase(reinterpret_cast<uintptr_t>(exec));
  return CUDA_SUCCESS;
}

}  // namespace

LaunchGraphs& FreshLaunchGraphs() {
  fake = LaunchGraphs();
  return fake;
}

void AddLaunchGraphs(ipc::DriverTable* table) {
  table->cuGraphCreate = &Create;
  table->cuGraphDestroy = &Destroy;
  table->cuGraphAddKernelNode_v2 = &AddKernel;
  table->cuGraphAddDependencies_v2 = &AddEdges;
  table->cuGraphInstantiateWithFlags = &Instantiate;
  table->cuGraphExecKernelNodeSetParams_v2 = &SetKernel;
  table->cuGraphLaunch = &Launch;
  table->cuGraphExecDestroy = &DestroyExec;
}

void AppendLaunch(const Named& named, std::vector<std::byte>* messages, ipc::Op op) {
  ipc::MessageHeader header;
  header.op = static_cast<uint16_t>(op);
  header.bytes = static_cast<uint32_t>(sizeof header + sizeof named + named.bytes_more);
  const size_t at = messages->size();
  messages->resize(at + ipc::PaddedBytes(header.bytes));
  std::memcpy(messages->data() + at, &header, sizeof header);
  std::memcpy(messages->data() + at + sizeof header, &named, sizeof named);
}

}  // namespace worker
