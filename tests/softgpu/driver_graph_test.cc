// Graphs: explicit nodes, instantiation, update, launch.
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/softgpu/graph_fixture.h"

namespace softgpu::testing {
namespace {

TEST_F(GraphTest, NodesRunBehindTheirDependencies) {
  const CUgraphNode last = AddStore(2, {}), first = AddStore(1, {});
  ASSERT_OK(cuGraphAddDependencies(graph_, &first, &last, nullptr, 1));
  size_t edges = 0, roots = 0;
  ASSERT_OK(cuGraphGetEdges(graph_, nullptr, nullptr, nullptr, &edges));
  ASSERT_OK(cuGraphGetRootNodes(graph_, nullptr, &roots));
  EXPECT_EQ(edges, 1u);
  EXPECT_EQ(roots, 1u);
  const CUgraphExec exec = Instantiate();
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 2u);
  ASSERT_OK(cuGraphAddDependencies(graph_, &last, &first, nullptr, 1));
  CUgraphExec cyclic = nullptr;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&cyclic, graph_, 0));
  ASSERT_OK(cuGraphExecDestroy(exec));
  ASSERT_OK(cuGraphDestroy(graph_));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph_));
}

TEST_F(GraphTest, EveryTypeOfNode) {
  static int host_runs = 0;
  host_runs = 0;
  CUgraphNode set = nullptr, copy = nullptr, host = nullptr, empty = nullptr, child = nullptr;
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = words_;
  fill.value = 7;
  fill.elementSize = 4;
  fill.width = 2;
  fill.height = 1;
  ASSERT_OK(cuGraphAddMemsetNode(&set, graph_, nullptr, 0, &fill, context_));
  CUDA_MEMCPY3D box = {};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = words_;
  box.dstDevice = words_ + 16;
  box.WidthInBytes = 8;
  box.Height = box.Depth = 1;
  ASSERT_OK(cuGraphAddMemcpyNode(&copy, graph_, &set, 1, &box, context_));
  CUDA_HOST_NODE_PARAMS call = {[](void*) { ++host_runs; }, nullptr};
  ASSERT_OK(cuGraphAddHostNode(&host, graph_, &copy, 1, &call));
  ASSERT_OK(cuGraphAddEmptyNode(&empty, graph_, &host, 1));
  CUgraph inner = nullptr;
  ASSERT_OK(cuGraphCreate(&inner, 0));
  std::swap(inner, graph_);
  CUdeviceptr third = words_ + 8;
  void* params[] = {&third};
  const CUDA_KERNEL_NODE_PARAMS bump = KernelParams(increment_, params);
  CUgraphNode ignored = nullptr;
  ASSERT_OK(cuGraphAddKernelNode(&ignored, graph_, nullptr, 0, &bump));
  std::swap(inner, graph_);
  ASSERT_OK(cuGraphAddChildGraphNode(&child, graph_, &empty, 1, inner));
  ASSERT_OK(cuGraphDestroy(inner)) << "the node has its own copy";
  const CUgraphExec exec = Instantiate();
  for (int i = 0; i < 3; ++i) ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(4), 7u);
  EXPECT_EQ(Word(5), 7u);
  EXPECT_EQ(Word(2), 3u);
  EXPECT_EQ(host_runs, 3);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  ASSERT_OK(cuGraphNodeGetType(child, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_GRAPH);
}

TEST_F(GraphTest, QueriesFillWhatFits) {
  CUgraphNode nodes[3] = {}, last = nullptr;
  for (CUgraphNode& node : nodes) ASSERT_OK(cuGraphAddEmptyNode(&node, graph_, nullptr, 0));
  const CUgraphNode twice[] = {nodes[1], nodes[1]};
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&last, graph_, twice, 2));
  ASSERT_OK(cuGraphAddEmptyNode(&last, graph_, nodes, 3));
  CUgraphNode told[5] = {last, last, last, last, last};
  CUgraphEdgeData data[5];
  std::memset(data, 1, sizeof data);
  size_t count = 0;
  ASSERT_OK(cuGraphNodeGetDependencies(last, nullptr, data, &count));
  EXPECT_EQ(count, 3u);
  EXPECT_NE(data[0].type, 0) << "without an array of nodes there is no room to write";
  count = 4;
  ASSERT_OK(cuGraphNodeGetDependencies(last, told, data, &count));
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(told[2], nodes[2]);
  EXPECT_EQ(told[3], nullptr);
  EXPECT_EQ(told[4], last);
  EXPECT_EQ(data[2].type, 0);
  EXPECT_NE(data[3].type, 0);
}

TEST_F(GraphTest, AChildGraphHasANameWhileItsNodeIsThere) {
  CUgraph outer = nullptr, clone = nullptr, child = nullptr;
  CUgraphNode inside = nullptr, node = nullptr, copy = nullptr;
  size_t count = 0;
  ASSERT_OK(cuGraphAddEmptyNode(&inside, graph_, nullptr, 0));
  ASSERT_OK(cuGraphCreate(&outer, 0));
  ASSERT_OK(cuGraphAddChildGraphNode(&node, outer, nullptr, 0, graph_));
  ASSERT_OK(cuGraphClone(&clone, outer));
  ASSERT_OK(cuGraphNodeFindInClone(&copy, node, clone));
  ASSERT_OK(cuGraphChildGraphNodeGetGraph(copy, &child));
  EXPECT_OK(cuGraphGetNodes(child, nullptr, &count));
  EXPECT_EQ(count, 1u);
  ASSERT_OK(cuGraphDestroyNode(copy));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(child, nullptr, &count));
  ASSERT_OK(cuGraphDestroy(clone));
  ASSERT_OK(cuGraphDestroy(outer));
}

TEST_F(GraphTest, ParametersOfAnExecutableGraphChange) {
  const CUgraphNode node = AddStore(5, {});
  const CUgraphExec exec = Instantiate();
  CUDA_KERNEL_NODE_PARAMS seen = {};
  ASSERT_OK(cuGraphKernelNodeGetParams(node, &seen));
  EXPECT_EQ(seen.func, store_);
  EXPECT_EQ(*static_cast<unsigned*>(seen.kernelParams[1]), 5u);
  unsigned value = 6;
  void* params[] = {&words_, &value};
  const CUDA_KERNEL_NODE_PARAMS changed = KernelParams(store_, params);
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuGraphExecKernelNodeSetParams(exec, node, &changed));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 5u);
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 6u);
  ASSERT_OK(cuGraphNodeSetEnabled(exec, node, 0));
  ASSERT_OK(cuMemsetD32Async(words_, 1, 1, stream_));
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 1u);
}

// XLA changes nodes of child graphs before each launch.
TEST_F(GraphTest, ParametersInsideAChildGraphChange) {
  AddStore(5, {});
  CUgraph outer = nullptr, outermost = nullptr, child = nullptr;
  CUgraphNode middle = nullptr, top = nullptr, inside = nullptr;
  size_t one = 1;
  ASSERT_OK(cuGraphCreate(&outer, 0));
  ASSERT_OK(cuGraphCreate(&outermost, 0));
  ASSERT_OK(cuGraphAddChildGraphNode(&middle, outer, nullptr, 0, graph_));
  ASSERT_OK(cuGraphAddChildGraphNode(&top, outermost, nullptr, 0, outer));
  ASSERT_OK(cuGraphChildGraphNodeGetGraph(top, &child));
  ASSERT_OK(cuGraphGetNodes(child, &middle, &one));
  ASSERT_OK(cuGraphChildGraphNodeGetGraph(middle, &child));
  ASSERT_OK(cuGraphGetNodes(child, &inside, &one));
  std::swap(graph_, outermost);
  const CUgraphExec exec = Instantiate();
  unsigned value = 6;
  void* params[] = {&words_, &value};
  const CUDA_KERNEL_NODE_PARAMS changed = KernelParams(store_, params);
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuGraphExecKernelNodeSetParams(exec, inside, &changed));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 5u);  // of the launch before the change
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 6u);
  // A capture of the launch takes what was changed.
  CUgraph captured = nullptr;
  CUgraphExec again = nullptr;
  ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamEndCapture(stream_, &captured));
  ASSERT_OK(cuGraphInstantiate(&again, captured, 0));
  ASSERT_OK(cuMemsetD32Async(words_, 1, 1, stream_));
  ASSERT_OK(cuGraphLaunch(again, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 6u);
  // An update names the same nodes, inside of child graphs as well.
  CUgraphExecUpdateResultInfo info = {};
  ASSERT_OK(cuGraphExecUpdate(exec, graph_, &info));
  value = 7;
  ASSERT_OK(cuGraphExecKernelNodeSetParams(exec, inside, &changed));
  ASSERT_OK(cuGraphNodeSetEnabled(exec, inside, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(exec, top, 0));
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 6u);
  ASSERT_OK(cuGraphNodeSetEnabled(exec, inside, 1));
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 7u);
}

TEST_F(GraphTest, UpdateComparesChildGraphs) {
  AddStore(5, {});
  CUgraph outer = nullptr, other = nullptr;
  CUgraphNode node = nullptr;
  ASSERT_OK(cuGraphCreate(&outer, 0));
  ASSERT_OK(cuGraphAddChildGraphNode(&node, outer, nullptr, 0, graph_));
  CUgraphExec exec = nullptr;
  ASSERT_OK(cuGraphInstantiate(&exec, outer, 0));
  AddStore(6, {});
  ASSERT_OK(cuGraphCreate(&other, 0));
  ASSERT_OK(cuGraphAddChildGraphNode(&node, other, nullptr, 0, graph_));
  CUgraphExecUpdateResultInfo info = {};
  EXPECT_CU(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST_F(GraphTest, UpdateTakesTheParametersOfTheSameShape) {
  AddStore(5, {});
  const CUgraphExec exec = Instantiate();
  CUgraph other = nullptr;
  ASSERT_OK(cuGraphCreate(&other, 0));
  std::swap(other, graph_);
  const CUgraphNode node = AddStore(9, {});
  CUgraphExecUpdateResultInfo info = {};
  ASSERT_OK(cuGraphExecUpdate(exec, graph_, &info));
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 9u);
  AddStore(10, {node});
  EXPECT_CU(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, graph_, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST_F(GraphTest, AnObjectLivesAsLongAsWhatWasMadeOfItsGraph) {
  std::atomic<int> ended{0};
  CUuserObject object = nullptr;
  const CUhostFn end = [](void* counter) { ++*static_cast<std::atomic<int>*>(counter); };
  ASSERT_OK(cuUserObjectCreate(&object, &ended, end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  ASSERT_OK(cuGraphRetainUserObject(graph_, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  const CUgraphNode node = AddStore(1, {});
  const CUgraphExec exec = Instantiate();
  ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  CUgraph outer = nullptr;
  ASSERT_OK(cuStreamEndCapture(stream_, &outer));
  void* params[] = {&words_, &ended};
  const CUDA_KERNEL_NODE_PARAMS changed = KernelParams(store_, params);
  ASSERT_OK(cuGraphExecKernelNodeSetParams(exec, node, &changed));
  ASSERT_OK(cuGraphDestroy(graph_));
  EXPECT_EQ(ended, 0);
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuGraphExecDestroy(exec));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(ended, 0);
  ASSERT_OK(cuGraphDestroy(outer));
  // The last launch gives its references up when the stream has forgotten it.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (ended == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(ended, 1);
}

TEST_F(GraphTest, EventNodesRecordAtEachLaunch) {
  CUevent event = nullptr;
  ASSERT_OK(cuEventCreate(&event, 0));
  const CUgraphNode store = AddStore(1, {});
  CUgraphNode record = nullptr;
  ASSERT_OK(cuGraphAddEventRecordNode(&record, graph_, &store, 1, event));
  const CUgraphExec exec = Instantiate();
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuEventSynchronize(event));
  EXPECT_EQ(Word(0), 1u);
}

// The graph's memory is the program's from the launch until a free, and the same again next time.
TEST_F(GraphTest, MemoryNodes) {
  CUgraph graph = nullptr;
  ASSERT_OK(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params.bytesize = 4096;
  CUgraphNode allocate = nullptr, fill = nullptr, release = nullptr;
  ASSERT_OK(cuGraphAddMemAllocNode(&allocate, graph, nullptr, 0, &params));
  CUDA_MEM_ALLOC_NODE_PARAMS told = {};
  ASSERT_OK(cuGraphMemAllocNodeGetParams(allocate, &told));
  EXPECT_EQ(told.dptr, params.dptr);
  const CUDA_MEMSET_NODE_PARAMS set = {params.dptr, 0, 0x5a, 1, 4096, 1};
  ASSERT_OK(cuGraphAddMemsetNode(&fill, graph, &allocate, 1, &set, context_));
  CUgraphExec exec = nullptr;
  ASSERT_OK(cuGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(cuGraphLaunch(exec, nullptr));
    ASSERT_OK(cuStreamSynchronize(nullptr));
    unsigned char byte = 0;
    ASSERT_OK(cuMemcpyDtoH(&byte, params.dptr + 4095, 1));
    EXPECT_EQ(byte, 0x5a);
    ASSERT_OK(cuMemFree(params.dptr));
  }
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&release, graph, &fill, 1, 4096));
  ASSERT_OK(cuGraphExecDestroy(exec));
  ASSERT_OK(cuGraphDestroy(graph));
}

}  // namespace
}  // namespace softgpu::testing
