// Conditional nodes of graphs, and the function of kernels that sets their conditions.
#include <utility>

#include "tests/softgpu/graph_fixture.h"

namespace softgpu::testing {
namespace {

// Sets the condition; counts down, and sets it to what is left.
constexpr char kSet[] = R"(
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry set(.param .u64 handle, .param .u32 value)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [handle];
  ld.param.u32 %r1, [value];
  .param .b64 a;
  .param .b32 b;
  st.param.b64 [a], %rd1;
  st.param.b32 [b], %r1;
  call.uni cudaGraphSetConditional, (a, b);
  ret;
}
.visible .entry count_down(.param .u64 handle, .param .u64 counter)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [handle];
  ld.param.u64 %rd2, [counter];
  ld.global.u32 %r1, [%rd2];
  sub.u32 %r2, %r1, 1;
  st.global.u32 [%rd2], %r2;
  .param .b64 a;
  .param .b32 b;
  st.param.b64 [a], %rd1;
  st.param.b32 [b], %r2;
  call.uni cudaGraphSetConditional, (a, b);
  ret;
}
)";

class ConditionalTest : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    const CUmodule module = Load(kSet);
    ASSERT_OK(cuModuleGetFunction(&set_, module, "set"));
    ASSERT_OK(cuModuleGetFunction(&count_down_, module, "count_down"));
  }

  CUgraphConditionalHandle Handle(unsigned value, unsigned flags) {
    CUgraphConditionalHandle handle = 0;
    EXPECT_OK(cuGraphConditionalHandleCreate(&handle, graph_, context_, value, flags));
    return handle;
  }

  CUgraphNodeParams ParamsOf(CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                             unsigned bodies) {
    CUgraphNodeParams params = {};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional = {handle, type, bodies, nullptr, context_};
    return params;
  }

  CUresult Add(CUgraph graph, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
               unsigned bodies, CUgraphNode* node, CUgraph** made) {
    CUgraphNodeParams params = ParamsOf(handle, type, bodies);
    const CUresult result = cuGraphAddNode(node, graph, nullptr, nullptr, 0, &params);
    *made = params.conditional.phGraph_out;
    return result;
  }

  CUgraph Body(CUgraph graph, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type) {
    CUgraphNode node = nullptr;
    CUgraph* bodies = nullptr;
    EXPECT_OK(Add(graph, handle, type, 1, &node, &bodies));
    return bodies[0];
  }

  template <class First, class Second>
  CUgraphNode AddKernel(CUgraph graph, CUfunction function, First first, Second second) {
    void* params[] = {&first, &second};
    const CUDA_KERNEL_NODE_PARAMS node_params = KernelParams(function, params);
    CUgraphNode node = nullptr;
    EXPECT_OK(cuGraphAddKernelNode(&node, graph, nullptr, 0, &node_params));
    return node;
  }

  CUfunction set_ = nullptr, count_down_ = nullptr;
};

TEST_F(ConditionalTest, AWhileRunsUntilAKernelEndsIt) {
  const CUgraphConditionalHandle handle = Handle(1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  const CUgraph body = Body(graph_, handle, CU_GRAPH_COND_TYPE_WHILE);
  AddKernel(body, count_down_, handle, words_);
  CUdeviceptr second = words_ + 4;
  void* params[] = {&second};
  const CUDA_KERNEL_NODE_PARAMS bump = KernelParams(increment_, params);
  CUgraphNode node = nullptr;
  ASSERT_OK(cuGraphAddKernelNode(&node, body, nullptr, 0, &bump));
  const CUgraphExec exec = Instantiate();
  for (unsigned rounds : {3u, 1u, 5u}) {
    ASSERT_OK(cuMemcpyHtoD(words_, &rounds, 4));
    ASSERT_OK(cuGraphLaunch(exec, stream_));
    ASSERT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(Word(0), 0u);
  }
  EXPECT_EQ(Word(1), 9u);
}

TEST_F(ConditionalTest, WithoutADefaultTheLastValueStays) {
  const CUgraphConditionalHandle handle = Handle(1, 0);
  AddKernel(Body(graph_, handle, CU_GRAPH_COND_TYPE_IF), store_, words_, 9u);
  const CUgraphExec exec = Instantiate();
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 0u) << "nothing has set it";
  unsigned value = 1;
  ASSERT_OK(Launch(set_, {const_cast<CUgraphConditionalHandle*>(&handle), &value}, stream_));
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 9u);
}

TEST_F(ConditionalTest, TheHandleLivesAsLongAsWhatWasInstantiated) {
  const CUgraphConditionalHandle handle = Handle(1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  AddKernel(Body(graph_, handle, CU_GRAPH_COND_TYPE_WHILE), count_down_, handle, words_);
  const CUgraphExec exec = Instantiate();
  ASSERT_OK(cuGraphDestroy(graph_));
  const unsigned rounds = 2;
  ASSERT_OK(cuMemcpyHtoD(words_, &rounds, 4));
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 0u);
}

TEST_F(ConditionalTest, ParametersOfAConditionalNodeStayAndUpdatesKeepItsShape) {
  const CUgraphConditionalHandle handle = Handle(1, CU_GRAPH_COND_ASSIGN_DEFAULT);
  CUgraphNode node = nullptr, other_node = nullptr;
  CUgraph* bodies = nullptr;
  ASSERT_OK(Add(graph_, handle, CU_GRAPH_COND_TYPE_SWITCH, 2, &node, &bodies));
  const CUgraphExec exec = Instantiate();
  CUgraphNodeParams params = ParamsOf(handle, CU_GRAPH_COND_TYPE_IF, 1);
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuGraphNodeSetParams(node, &params));
  EXPECT_CU(CUDA_ERROR_NOT_SUPPORTED, cuGraphExecNodeSetParams(exec, node, &params));
  const CUgraph first = graph_;
  for (const auto& [type, count] :
       {std::pair(CU_GRAPH_COND_TYPE_SWITCH, 3u), std::pair(CU_GRAPH_COND_TYPE_IF, 2u)}) {
    ASSERT_OK(cuGraphCreate(&graph_, 0));
    ASSERT_OK(Add(graph_, Handle(0, 0), type, count, &other_node, &bodies));
    CUgraphExecUpdateResultInfo info = {};
    EXPECT_CU(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, graph_, &info));
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    EXPECT_EQ(info.errorNode, other_node);
    ASSERT_OK(cuGraphDestroy(graph_));
  }
  graph_ = first;
}

}  // namespace
}  // namespace softgpu::testing
