// Stream capture: streams that fork and join, what is refused, and what becomes a node.
#include <string>
#include <vector>

#include "tests/softgpu/graph_fixture.h"

namespace softgpu::testing {
namespace {

TEST_F(GraphTest, CaptureAcrossTwoStreams) {
  CUstream second = nullptr;
  CUevent fork = nullptr, join = nullptr;
  ASSERT_OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  ASSERT_OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr other = words_ + 4;
  ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_OK(Launch(increment_, {&words_}, stream_));
  ASSERT_OK(cuEventRecord(fork, stream_));
  EXPECT_CU(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(fork));
  ASSERT_OK(cuStreamWaitEvent(second, fork, 0));
  ASSERT_OK(Launch(increment_, {&other}, second));
  ASSERT_OK(cuMemsetD32Async(words_ + 8, 3, 1, stream_));
  ASSERT_OK(cuEventRecord(join, second));
  ASSERT_OK(cuStreamWaitEvent(stream_, join, 0));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  ASSERT_OK(cuStreamIsCapturing(second, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph captured = nullptr;
  ASSERT_OK(cuStreamEndCapture(stream_, &captured));
  ASSERT_OK(cuStreamIsCapturing(second, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(Word(0), 0u) << "nothing ran";
  size_t nodes = 0;
  ASSERT_OK(cuGraphGetNodes(captured, nullptr, &nodes));
  EXPECT_EQ(nodes, 3u);
  CUgraphExec exec = nullptr;
  ASSERT_OK(cuGraphInstantiate(&exec, captured, 0));
  ASSERT_OK(cuGraphDestroy(captured));
  for (int i = 0; i < 4; ++i) ASSERT_OK(cuGraphLaunch(exec, i % 2 == 0 ? stream_ : second));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(Word(0), 4u);
  EXPECT_EQ(Word(1), 4u);
  EXPECT_EQ(Word(2), 3u);
}

TEST_F(GraphTest, LaunchOfAGraphIsCapturedAsItsCopy) {
  AddStore(8, {});
  const CUgraphExec inner = Instantiate();
  ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_OK(cuGraphLaunch(inner, stream_));
  ASSERT_OK(Launch(increment_, {&words_}, stream_));
  CUgraph captured = nullptr;
  ASSERT_OK(cuStreamEndCapture(stream_, &captured));
  ASSERT_OK(cuGraphExecDestroy(inner));
  CUgraphExec exec = nullptr;
  ASSERT_OK(cuGraphInstantiate(&exec, captured, 0));
  ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(Word(0), 9u);
}

TEST_F(GraphTest, CapturesThatGoWrongSaySo) {
  CUgraph captured = nullptr;
  EXPECT_CU(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream_, &captured));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CU(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream_));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, Launch(increment_, {&words_}, stream_));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream_, &captured));
  EXPECT_OK(Launch(increment_, {&words_}, stream_)) << "the stream works again";
  EXPECT_OK(cuStreamSynchronize(stream_));  // another is to write there below

  CUstream second = nullptr, blocking = nullptr;
  CUevent fork = nullptr;
  ASSERT_OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  ASSERT_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_OK(cuEventRecord(fork, stream_));
  ASSERT_OK(cuStreamWaitEvent(second, fork, 0));
  ASSERT_OK(Launch(increment_, {&words_}, second));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(second, &captured));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(stream_, &captured));
  EXPECT_CU(CUDA_ERROR_CAPTURED_EVENT, cuStreamWaitEvent(second, fork, 0));

  ASSERT_OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, Launch(increment_, {&words_}, nullptr));
  ASSERT_OK(cuStreamEndCapture(blocking, &captured));
  EXPECT_OK(Launch(increment_, {&words_}, nullptr));
  EXPECT_OK(cuCtxSynchronize());
}

TEST_F(GraphTest, AStreamThatGoesTakesItsCaptureAlong) {
  CUstream second = nullptr;
  CUevent fork = nullptr;
  CUgraph captured = nullptr;
  ASSERT_OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_OK(cuEventRecord(fork, stream_));
  EXPECT_CU(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamWaitEvent(nullptr, fork, 0));
  ASSERT_OK(cuStreamWaitEvent(second, fork, 0));
  ASSERT_OK(Launch(increment_, {&words_}, second));
  ASSERT_OK(cuStreamDestroy(second));
  EXPECT_CU(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream_, &captured));
  EXPECT_OK(Launch(increment_, {&words_}, stream_));
  EXPECT_OK(cuStreamSynchronize(stream_));
}

TEST_F(GraphTest, CapturedAllocationsAreNodes) {
  size_t before = 0, after = 0, total = 0;
  ASSERT_OK(cuMemGetInfo(&before, &total));
  CUdeviceptr memory = 0;
  ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  ASSERT_OK(cuMemAllocAsync(&memory, 1 << 20, stream_));
  ASSERT_OK(cuMemsetD32Async(memory, 7, 1 << 18, stream_));
  ASSERT_OK(cuMemFreeAsync(memory, stream_));
  CUgraph graph = nullptr;
  ASSERT_OK(cuStreamEndCapture(stream_, &graph));
  CUgraphNode nodes[3] = {};
  size_t count = 3;
  ASSERT_OK(cuGraphGetNodes(graph, nodes, &count));
  ASSERT_EQ(count, 3u);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  ASSERT_OK(cuGraphNodeGetType(nodes[0], &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  CUgraphExec exec = nullptr;
  ASSERT_OK(cuGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) ASSERT_OK(cuGraphLaunch(exec, stream_));
  ASSERT_OK(cuStreamSynchronize(stream_));
  ASSERT_OK(cuGraphExecDestroy(exec));
  ASSERT_OK(cuGraphDestroy(graph));
  ASSERT_OK(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace softgpu::testing
