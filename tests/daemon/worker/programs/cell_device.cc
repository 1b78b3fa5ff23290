#include "tests/daemon/worker/programs/cell_device.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "ipc/calls/limits.h"

namespace worker {
namespace {

// The arguments of each kernel; further ones may follow.
struct Arguments {
  uint64_t to = 0, from = 0;
  uint32_t value = 0, unused = 0;
};

uint64_t Mix(uint64_t word, uint64_t other) {
  uint64_t state = word ^ (other * 0xff51afd7ed558ccdu);
  return protocol::NextWord(&state);
}

}  // namespace

// --- work ----------------------------------------------------------------------------------------

uint32_t CellDevice::CreateStream() {
  streams_.emplace_back();
  return static_cast<uint32_t>(streams_.size() - 1);
}

void CellDevice::Do(uint32_t stream, const Work& work) { Add(stream, Item{.work = work}); }

void CellDevice::Launch(uint32_t stream, std::shared_ptr<const WorkGraph> graph) {
  ++graphs_launched_;
  Add(stream, Item{.work = {}, .graph = std::move(graph)});
}

uint64_t CellDevice::End(uint32_t stream) const {
  const Stream& of = streams_[stream];
  return of.finished + of.items.size() - of.next;
}

void CellDevice::WaitFor(uint32_t stream, uint32_t other, uint64_t end) {
  Add(stream, Item{.work = {}, .graph = nullptr, .other = other, .end = end});
}

void CellDevice::Add(uint32_t stream, Item item) {
  streams_[stream].items.push_back(std::move(item));
  for (uint64_t steps = dice_.Below(4); steps != 0; --steps) Step();
}

void CellDevice::Finish() {
  while (Step()) continue;
  for (const Stream& stream : streams_) assert(stream.items.empty());
}

bool CellDevice::Step() {
  const size_t count = streams_.size(), first = count == 0 ? 0 : dice_.Below(count);
  for (size_t i = 0; i < count; ++i) {
    if (StepOf(&streams_[(first + i) % count])) return true;
  }
  return false;
}

// False: the stream has nothing, or waits.
bool CellDevice::StepOf(Stream* stream) {
  if (stream->items.empty()) return false;
  Item& item = stream->items[stream->next];
  if (item.other != kNone && streams_[item.other].finished < item.end) return false;
  if (item.graph != nullptr) {
    const size_t count = item.graph->nodes.size();
    size_t node = dice_.Below(count);
    while ((item.done >> node & 1) != 0 || (item.graph->before[node] & ~item.done) != 0)
      node = (node + 1) % count;
    item.done |= uint64_t{1} << node;
    Run(item.graph->nodes[node]);
    if (static_cast<size_t>(std::popcount(item.done)) != count) return true;
  } else if (item.other == kNone) {
    Run(item.work);
  }
  ++stream->finished;
  if (++stream->next == stream->items.size()) {
    stream->items.clear();
    stream->next = 0;
  }
  return true;
}

void CellDevice::Run(const Work& work) {
  const uint64_t self = Mix(Mix(work.function, work.value), Mix(work.count, work.more));
  const uint32_t added = static_cast<uint32_t>(self);
  Cell& to = At(work.to);
  const Cell from = At(work.from);
  switch (EffectOf(work.function)) {
    case Effect::kFill:
      return Fill(work.to, work.count, work.value);
    case Effect::kCopy:
      for (uint32_t i = 0; i < work.count; ++i) {
        cells_[work.to + i].past = Mix(cells_[work.to + i].past, cells_[work.from + i].past);
        cells_[work.to + i].value = cells_[work.from + i].value;
      }
      return;
    case Effect::kStore:
      to = {added, Mix(to.past, self)};
      return;
    case Effect::kAdd:
      to = {to.value + added, to.past + self};
      return;
    case Effect::kMix:
      to = {to.value * 5 + from.value + added, Mix(to.past, self + from.past)};
      return;
    case Effect::kSum:
      to = {from.value + added, Mix(to.past, self ^ from.past)};
      return;
    case Effect::kAnew:
      to = {from.value + added, Mix(self, from.past)};
      return;
  }
}

void CellDevice::Fill(uint32_t cell, uint32_t count, uint32_t value) {
  for (uint32_t i = cell; i < cell + count; ++i) cells_[i] = {value, Mix(cells_[i].past, value)};
}

// --- graphs --------------------------------------------------------------------------------------

namespace {

CellDevice* device_in_use = nullptr;
uint64_t graphs_alive = 0;

std::shared_ptr<WorkGraph>* GraphOf(void* handle) {
  return static_cast<std::shared_ptr<WorkGraph>*>(handle);
}
uintptr_t NumberOf(CUgraphNode node) { return reinterpret_cast<uintptr_t>(node) - 1; }

Work WorkOf(const CUDA_KERNEL_NODE_PARAMS& params) {
  Work work{.function = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(params.func) - 1)};
  Arguments arguments;
  const std::byte* const packed = static_cast<const std::byte*>(params.extra[1]);
  std::memcpy(&arguments, packed, sizeof arguments);
  work.to = static_cast<uint32_t>(arguments.to);
  work.from = static_cast<uint32_t>(arguments.from);
  work.value = arguments.value;
  work.count = params.gridDimX;
  const size_t bytes = *static_cast<const size_t*>(params.extra[3]) - sizeof arguments;
  work.more = SumOfWords(packed + sizeof arguments, bytes / sizeof(uint32_t));
  return work;
}

CUresult MakeGraph(CUgraph* graph, unsigned) {
  ++graphs_alive;
  *graph = reinterpret_cast<CUgraph>(new std::shared_ptr<WorkGraph>(std::make_shared<WorkGraph>()));
  return CUDA_SUCCESS;
}
CUresult DestroyGraph(CUgraph graph) {
  --graphs_alive;
  delete GraphOf(graph);
  return CUDA_SUCCESS;
}
CUresult DestroyExecutable(CUgraphExec exec) {
  --graphs_alive;
  delete GraphOf(exec);
  return CUDA_SUCCESS;
}
CUresult AddWork(const Work& work, CUgraph handle, CUgraphNode* node) {
  if (device_in_use->Refuses()) return CUDA_ERROR_NOT_SUPPORTED;
  WorkGraph& graph = **GraphOf(handle);
  assert(graph.nodes.size() < WorkGraph::kNodesMax);
  graph.nodes.push_back(work);
  graph.before.push_back(0);
  *node = reinterpret_cast<CUgraphNode>(graph.nodes.size());
  return CUDA_SUCCESS;
}
CUresult AddKernelWork(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                       const CUDA_KERNEL_NODE_PARAMS* params) {
  return AddWork(WorkOf(*params), graph, node);
}
uint32_t CellOf(CUdeviceptr address) {
  return static_cast<uint32_t>((address - AddressOfCell(0)) / kCellBytes);
}
CUresult AddFillWork(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                     const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext) {
  const Work work{.function = static_cast<uint32_t>(Effect::kFill),
                  .to = CellOf(params->dst),
                  .value = params->value,
                  .count = static_cast<uint32_t>(params->width)};
  return AddWork(work, graph, node);
}
CUresult AddCopyWork(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                     const CUDA_MEMCPY3D* params, CUcontext) {
  const Work work{.function = static_cast<uint32_t>(Effect::kCopy),
                  .to = CellOf(params->dstDevice),
                  .from = CellOf(params->srcDevice),
                  .count = static_cast<uint32_t>(params->WidthInBytes / kCellBytes)};
  return AddWork(work, graph, node);
}
CUresult AddOrder(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                  const CUgraphEdgeData*, size_t count) {
  for (size_t i = 0; i < count; ++i)
    (*GraphOf(graph))->before[NumberOf(to[i])] |= uint64_t{1} << NumberOf(from[i]);
  return CUDA_SUCCESS;
}
CUresult MakeExecutable(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  if (device_in_use->Refuses()) return CUDA_ERROR_NOT_SUPPORTED;
  ++graphs_alive;
  *exec = reinterpret_cast<CUgraphExec>(
      new std::shared_ptr<WorkGraph>(std::make_shared<WorkGraph>(**GraphOf(graph))));
  return CUDA_SUCCESS;
}
// A launch before keeps its work.
CUresult SetKernelWork(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (device_in_use->Refuses()) return CUDA_ERROR_NOT_SUPPORTED;
  std::shared_ptr<WorkGraph>& graph = *GraphOf(exec);
  if (graph.use_count() != 1) graph = std::make_shared<WorkGraph>(*graph);
  graph->nodes[NumberOf(node)] = WorkOf(*params);
  return CUDA_SUCCESS;
}
CUresult LaunchExecutable(CUgraphExec exec, CUstream stream) {
  device_in_use->Launch(StreamOfHandle(stream), *GraphOf(exec));
  return CUDA_SUCCESS;
}

}  // namespace

void UseCellDevice(CellDevice* device) { device_in_use = device; }

void AddCellGraphs(ipc::DriverTable* table) {
  table->cuGraphCreate = &MakeGraph;
  table->cuGraphDestroy = &DestroyGraph;
  table->cuGraphAddKernelNode_v2 = &AddKernelWork;
  table->cuGraphAddMemsetNode = &AddFillWork;
  table->cuGraphAddMemcpyNode = &AddCopyWork;
  table->cuGraphAddDependencies_v2 = &AddOrder;
  table->cuGraphInstantiateWithFlags = &MakeExecutable;
  table->cuGraphExecKernelNodeSetParams_v2 = &SetKernelWork;
  table->cuGraphLaunch = &LaunchExecutable;
  table->cuGraphExecDestroy = &DestroyExecutable;
}

uint64_t CellGraphsAlive() { return graphs_alive; }

CUdeviceptr AddressOfCell(uint32_t cell) {
  return ipc::limits::kSlotBase + CUdeviceptr{cell} * kCellBytes;
}

uint32_t SumOfWords(const std::byte* words, size_t count) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, words + i * sizeof word, sizeof word);
    sum += word * static_cast<uint32_t>(2 * i + 1);
  }
  return sum;
}

}  // namespace worker
