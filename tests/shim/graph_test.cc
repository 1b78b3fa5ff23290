// Graphs: what of them the worker is told, and when.
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/shim/fake_graphs.h"
#include "tests/shim/fixture.h"

namespace {

constexpr char kPtx[] = ".version 7.0\n.target sm_80\n";

class Graphs : public shim_test::InContext {
 protected:
  void SetUp() override {
    InContext::SetUp();
    ASSERT_EQ(local::cuModuleLoadData(&module_, kPtx), CUDA_SUCCESS);
    ASSERT_EQ(local::cuModuleGetFunction(&function_, module_, "kernel"), CUDA_SUCCESS);
    ASSERT_EQ(local::cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(local::cuGraphCreate(&graph_, 0), CUDA_SUCCESS);
    worker_->TakeEdges();
  }
  void TearDown() override {
    EXPECT_EQ(local::cuGraphDestroy(graph_), CUDA_SUCCESS);
    InContext::TearDown();
  }

  // The kernel's parameters are (u64, u32, u8[3]).
  CUDA_KERNEL_NODE_PARAMS_v2 Kernel(uint32_t number) {
    number_ = number;
    CUDA_KERNEL_NODE_PARAMS_v2 params{};
    params.func = function_;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = params_;
    return params;
  }
  CUgraphNode AddKernel(const std::vector<CUgraphNode>& after) {
    CUgraphNode node = nullptr;
    const CUDA_KERNEL_NODE_PARAMS_v2 params = Kernel(1);
    EXPECT_EQ(local::cuGraphAddKernelNode_v2(&node, graph_, after.data(), after.size(), &params),
              CUDA_SUCCESS);
    return node;
  }
  CUgraphNode AddHost(const std::vector<CUgraphNode>& after) {
    CUgraphNode node = nullptr;
    const CUDA_HOST_NODE_PARAMS_v1 params = {[](void*) {}, nullptr};
    EXPECT_EQ(local::cuGraphAddHostNode(&node, graph_, after.data(), after.size(), &params),
              CUDA_SUCCESS);
    return node;
  }
  CUgraphExec Instantiate() {
    CUgraphExec exec = nullptr;
    EXPECT_EQ(local::cuGraphInstantiateWithFlags(&exec, graph_, 0), CUDA_SUCCESS);
    return exec;
  }

  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  uint64_t address_ = 0;
  uint32_t number_ = 0;
  uint8_t tail_[3] = {};
  void* params_[3] = {&address_, &number_, tail_};
};

using Edges = std::vector<std::pair<uint32_t, uint32_t>>;

TEST_F(Graphs, TheWorkerHearsOfAGraphWhenItIsInstantiated) {
  const CUgraphNode first = AddKernel({});
  const CUgraphNode second = AddKernel({first});
  AddKernel({first, second});
  const int pieces = CountOf("GraphBegin"), kernels = CountOf("GraphKernel");
  const int graphs = CountOf("GraphLaunch");
  EXPECT_EQ(pieces, CountOf("GraphEnd"));
  const CUgraphExec exec = Instantiate();
  EXPECT_EQ(CountOf("GraphBegin"), pieces + 1);
  EXPECT_EQ(CountOf("GraphKernel"), kernels + 3);
  EXPECT_EQ(worker_->TakeEdges(), (Edges{{0, 1}, {0, 2}, {1, 2}}));
  const int launches = CountOf("Launch");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(local::cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("GraphLaunch"), graphs + 5);
  EXPECT_EQ(CountOf("Launch"), launches);
  EXPECT_EQ(local::cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("GraphEnd"), CountOf("GraphBegin"));
  EXPECT_EQ(local::cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, AChangedKernelIsOneMessageAndAnUnchangedOneNone) {
  const CUgraphNode first = AddKernel({});
  AddKernel({first});
  const CUgraphExec exec = Instantiate();
  const int pieces = CountOf("GraphBegin"), changes = CountOf("GraphSetKernel");
  const CUDA_KERNEL_NODE_PARAMS_v2 other = Kernel(2);
  EXPECT_EQ(local::cuGraphExecKernelNodeSetParams_v2(exec, first, &other), CUDA_SUCCESS);
  EXPECT_EQ(local::cuGraphExecKernelNodeSetParams_v2(exec, first, &other), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("GraphSetKernel"), changes + 1);
  EXPECT_EQ(local::cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("GraphBegin"), pieces);
  // What is switched off makes the piece anew, at the next launch.
  EXPECT_EQ(local::cuGraphNodeSetEnabled(exec, first, 0), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("GraphBegin"), pieces);
  EXPECT_EQ(local::cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("GraphBegin"), pieces + 1);
  EXPECT_EQ(local::cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

TEST_F(Graphs, AHostFunctionPartsTheGraph) {
  const CUgraphNode first = AddKernel({});
  const CUgraphNode second = AddKernel({first});
  const CUgraphNode host = AddHost({second});
  const CUgraphNode third = AddKernel({host});
  AddKernel({third});
  const int pieces = CountOf("GraphBegin"), calls = CountOf("HostCall");
  const int launches = CountOf("GraphLaunch");
  const CUgraphExec exec = Instantiate();
  EXPECT_EQ(CountOf("GraphBegin"), pieces + 2);
  EXPECT_EQ(worker_->TakeEdges(), (Edges{{0, 1}, {0, 1}}));
  EXPECT_EQ(local::cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("GraphLaunch"), launches + 2);
  EXPECT_EQ(CountOf("HostCall"), calls + 1);
  EXPECT_EQ(local::cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

// With a conditional node that has a body.
class ConditionalGraphs : public Graphs {
 protected:
  void SetUp() override {
    Graphs::SetUp();
    ASSERT_EQ(local::cuGraphConditionalHandleCreate(&address_, graph_, nullptr, 1,
                                                    CU_GRAPH_COND_ASSIGN_DEFAULT),
              CUDA_SUCCESS);
    shim_test::FakeGraphs::Process().TakeWords();
  }
  // A kernel that sets the condition.
  CUgraphNode AddSetter(CUgraph graph, const std::vector<CUgraphNode>& after) {
    CUgraphNode node = nullptr;
    const CUDA_KERNEL_NODE_PARAMS_v2 params = Kernel(1);
    EXPECT_EQ(local::cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(), &params),
              CUDA_SUCCESS);
    return node;
  }
  CUgraphNode AddConditional(const std::vector<CUgraphNode>& after, CUgraph* body) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = address_;
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 1;
    CUgraphNode node = nullptr;
    EXPECT_EQ(local::cuGraphAddNode_v2(&node, graph_, after.data(), nullptr, after.size(), &params),
              CUDA_SUCCESS);
    *body = params.conditional.phGraph_out[0];
    return node;
  }
};

TEST_F(ConditionalGraphs, ThePieceHasTheBodiesAndKernelsTheDriversHandle) {
  CUgraph body = nullptr;
  const CUgraphNode setter = AddSetter(graph_, {});
  const CUgraphNode loop = AddConditional({setter}, &body);
  AddSetter(body, {AddSetter(body, {})});
  AddKernel({loop});
  const int insides = CountOf("GraphInside"), pieces = CountOf("GraphBegin");
  const int conditionals = CountOf("GraphConditional"), conditions = CountOf("GraphCondition");
  const CUgraphExec exec = Instantiate();
  EXPECT_EQ(CountOf("GraphBegin"), pieces + 1);
  EXPECT_EQ(CountOf("GraphCondition"), conditions + 1);
  EXPECT_EQ(CountOf("GraphConditional"), conditionals + 1);
  EXPECT_EQ(CountOf("GraphInside"), insides + 2) << "into the body and out of it";
  // The fake counts the nodes of each graph for itself.
  EXPECT_EQ(worker_->TakeEdges(), (Edges{{0, 1}, {0, 1}, {1, 2}}));
  EXPECT_EQ(shim_test::FakeGraphs::Process().TakeWords(),
            std::vector<uint64_t>(4, shim_test::FakeGraphs::kHandle));
  EXPECT_EQ(local::cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

TEST_F(ConditionalGraphs, AConditionIsSetInItsOwnPieceAlone) {
  CUgraph body = nullptr;
  const CUgraphNode setter = AddSetter(graph_, {});
  const CUgraphNode host = AddHost({setter});
  AddConditional({host}, &body);
  CUgraphExec exec = nullptr;
  EXPECT_EQ(local::cuGraphInstantiateWithFlags(&exec, graph_, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(local::cuGraphDestroyNode(host), CUDA_SUCCESS);
  EXPECT_EQ(local::cuGraphInstantiateWithFlags(&exec, graph_, 0), CUDA_SUCCESS);
  EXPECT_EQ(local::cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

TEST_F(ConditionalGraphs, BodiesCopyNothingThatTheClientHasAPartIn) {
  CUgraph body = nullptr;
  AddConditional({}, &body);
  char from[8] = {}, to[8] = {};
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  copy.dstHost = to;
  copy.WidthInBytes = sizeof from;
  copy.Height = copy.Depth = 1;
  CUgraphNode node = nullptr;
  ASSERT_EQ(local::cuGraphAddMemcpyNode(&node, body, nullptr, 0, &copy, nullptr), CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  EXPECT_EQ(local::cuGraphInstantiateWithFlags(&exec, graph_, 0), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Graphs, WhatTheDriverRefusesFailsTheInstantiation) {
  AddKernel({});
  AddKernel({});
  const int ends = CountOf("GraphEnd");
  shim_test::FailNext("cuGraphInstantiateWithFlags", CUDA_ERROR_OUT_OF_MEMORY);
  CUgraphExec exec = nullptr;
  EXPECT_EQ(local::cuGraphInstantiateWithFlags(&exec, graph_, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CountOf("GraphEnd"), ends + 1);
}

TEST_F(Graphs, BigGraphsTravelInPieces) {
  constexpr size_t kNodes = 40'000;
  std::vector<CUgraphNode> nodes;
  for (size_t i = 0; i < kNodes; ++i) {
    nodes.push_back(i < 2 ? AddKernel({}) : AddKernel({nodes[i - 1], nodes[i - 2]}));
  }
  const int pieces = CountOf("GraphBegin"), launches = CountOf("GraphLaunch");
  const CUgraphExec exec = Instantiate();
  const int made = CountOf("GraphBegin") - pieces;
  EXPECT_EQ(made, 3);  // of 16,384 nodes at most
  EXPECT_EQ(local::cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("GraphLaunch"), launches + made);
  EXPECT_EQ(local::cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

TEST_F(Graphs, AContextTakesItsPiecesAlong) {
  AddKernel({});
  AddKernel({});
  const CUgraphExec exec = Instantiate();
  const int ends = CountOf("GraphEnd");
  CUcontext other = nullptr;
  ASSERT_EQ(local::cuCtxDestroy_v2(context_), CUDA_SUCCESS);
  ASSERT_EQ(local::cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("GraphEnd"), ends + 1);
  EXPECT_EQ(local::cuGraphLaunch(exec, nullptr), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(local::cuGraphExecDestroy(exec), CUDA_SUCCESS);
  context_ = other;
}

TEST_F(Graphs, AModuleTakesThePiecesOfItsKernelsAlong) {
  AddKernel({});
  AddKernel({});
  const CUgraphExec exec = Instantiate();
  const int ends = CountOf("GraphEnd");
  ASSERT_EQ(local::cuModuleUnload(module_), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("GraphEnd"), ends + 1);
  EXPECT_NE(local::cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_EQ(local::cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("GraphEnd"), ends + 1);
}

TEST_F(Graphs, AnObjectLivesAsLongAsAnExecutableOfItsGraph) {
  static std::atomic<int> ended{0};
  CUuserObject object = nullptr;
  const CUhostFn end = [](void* counter) { ++*static_cast<std::atomic<int>*>(counter); };
  ASSERT_EQ(local::cuUserObjectCreate(&object, &ended, end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(local::cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE),
            CUDA_SUCCESS);
  ASSERT_EQ(local::cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(ended, 0);
  ASSERT_EQ(local::cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  ASSERT_EQ(local::cuGraphExecDestroy(exec), CUDA_SUCCESS);
  // Given up by a host function behind the launch.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (ended == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(ended, 1);
}

TEST_F(Graphs, WhatIsCapturedIsNotSent) {
  CUdeviceptr address = 0;
  ASSERT_EQ(local::cuMemAlloc_v2(&address, 4096), CUDA_SUCCESS);
  const int launches = CountOf("Launch"), records = CountOf("EventRecord");
  CUevent event = nullptr;
  ASSERT_EQ(local::cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(local::cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(local::cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, stream_, params_, nullptr),
              CUDA_SUCCESS);
  }
  EXPECT_EQ(local::cuMemcpyAsync(address, address + 2048, 64, stream_), CUDA_SUCCESS);
  EXPECT_EQ(local::cuEventRecord(event, stream_), CUDA_SUCCESS);
  EXPECT_EQ(local::cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  CUgraph captured = nullptr;
  ASSERT_EQ(local::cuStreamEndCapture(stream_, &captured), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("Launch"), launches);
  EXPECT_EQ(CountOf("EventRecord"), records);
  size_t nodes = 0, edges = 0;
  EXPECT_EQ(local::cuGraphGetNodes(captured, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(local::cuGraphGetEdges(captured, nullptr, nullptr, &edges), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 4u);
  EXPECT_EQ(edges, 3u);
  EXPECT_EQ(local::cuEventRecord(event, stream_), CUDA_SUCCESS);
  EXPECT_EQ(local::cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(local::cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(local::cuGraphDestroy(captured), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemFree_v2(address), CUDA_SUCCESS);
}

}  // namespace
