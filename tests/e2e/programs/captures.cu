// Streams captured into graphs: every kind of call, streams that join and are joined back, and what
// a capture refuses.
#include "check.h"

#include <vector>

constexpr int kCount = 1 << 12;
constexpr int kBlocks = kCount / 128;

__global__ void Multiply(unsigned* values, unsigned factor) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= factor;
}
__global__ void Add(unsigned* values, unsigned term) {
  values[blockIdx.x * blockDim.x + threadIdx.x] += term;
}

struct Buffers {
  unsigned *a, *b, *pinned;
  std::vector<unsigned> pageable = std::vector<unsigned>(kCount, 4);
  cudaStream_t one, two;
};

static unsigned First(const unsigned* device) {
  unsigned value = 0;
  CUDA_CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

static void CUDA_CB Count(void* data) { ++*static_cast<int*>(data); }

static size_t NodesOf(cudaGraph_t graph) {
  size_t nodes = 0;
  CUDA_CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
  return nodes;
}

// A loop of kernels, fills and copies in one stream, launched many times.
static void OneStream(Buffers& buffers) {
  const size_t bytes = kCount * sizeof(unsigned);
  int calls = 0;
  cudaGraph_t graph;
  cudaStreamCaptureStatus status;
  CUDA_CHECK(cudaStreamBeginCapture(buffers.one, cudaStreamCaptureModeGlobal));
  CUDA_CHECK(cudaStreamIsCapturing(buffers.one, &status));
  CUDA_CHECK(cudaMemsetAsync(buffers.a, 0, bytes, buffers.one));
  for (unsigned i = 0; i < 10; ++i) {
    Add<<<kBlocks, 128, 0, buffers.one>>>(buffers.a, i);
    Multiply<<<kBlocks, 128, 0, buffers.one>>>(buffers.a, 3);
  }
  CUDA_CHECK(cudaMemcpyAsync(buffers.b, buffers.a, bytes, cudaMemcpyDeviceToDevice, buffers.one));
  CUDA_CHECK(
      cudaMemcpyAsync(buffers.pinned, buffers.b, bytes, cudaMemcpyDeviceToHost, buffers.one));
  CUDA_CHECK(cudaLaunchHostFunc(buffers.one, &Count, &calls));
  CUDA_CHECK(cudaStreamEndCapture(buffers.one, &graph));
  printf("status %d, %zu nodes, nothing done: %d calls\n", (int)status, NodesOf(graph), calls);
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < 20; ++i) CUDA_CHECK(cudaGraphLaunch(exec, buffers.one));
  CUDA_CHECK(cudaStreamSynchronize(buffers.one));
  printf("twenty launches: %u, %d calls\n", buffers.pinned[kCount - 1], calls);
  CUDA_CHECK(cudaGraphExecDestroy(exec));
}

// Another stream joins by an event and is joined back.
static void TwoStreams(Buffers& buffers) {
  cudaEvent_t fork, join;
  CUDA_CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CUDA_CHECK(cudaMemset(buffers.b, 0, kCount * sizeof(unsigned)));
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaStreamBeginCapture(buffers.one, cudaStreamCaptureModeThreadLocal));
  CUDA_CHECK(cudaMemcpyAsync(buffers.a, buffers.pageable.data(), kCount * sizeof(unsigned),
                             cudaMemcpyHostToDevice, buffers.one));
  CUDA_CHECK(cudaEventRecord(fork, buffers.one));
  CUDA_CHECK(cudaStreamWaitEvent(buffers.two, fork, 0));
  Multiply<<<kBlocks, 128, 0, buffers.one>>>(buffers.a, 7);
  Add<<<kBlocks, 128, 0, buffers.two>>>(buffers.b, 11);
  CUDA_CHECK(cudaEventRecord(join, buffers.two));
  printf("a captured event: %d\n", (int)cudaEventQuery(join));
  CUDA_CHECK(cudaStreamWaitEvent(buffers.one, join, 0));
  Add<<<kBlocks, 128, 0, buffers.one>>>(buffers.a, 1);
  cudaGraph_t graph;
  CUDA_CHECK(cudaStreamEndCapture(buffers.one, &graph));
  size_t edges = 0;
  CUDA_CHECK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &edges));
  printf("%zu nodes, %zu edges\n", NodesOf(graph), edges);
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (unsigned i = 1; i <= 3; ++i) {
    buffers.pageable.assign(kCount, i);
    CUDA_CHECK(cudaGraphLaunch(exec, buffers.two));
    CUDA_CHECK(cudaStreamSynchronize(buffers.two));
    printf("launch %u: %u %u\n", i, First(buffers.a), First(buffers.b));
  }
  printf("waiting for what was captured: %d\n", (int)cudaStreamWaitEvent(buffers.one, join, 0));
  CUDA_CHECK(cudaEventRecord(join, buffers.one));
  printf("recorded again: %d\n", (int)cudaStreamWaitEvent(buffers.two, join, 0));

  // A launch in a capture is a child graph.
  CUDA_CHECK(cudaStreamBeginCapture(buffers.one, cudaStreamCaptureModeRelaxed));
  CUDA_CHECK(cudaGraphLaunch(exec, buffers.one));
  Add<<<kBlocks, 128, 0, buffers.one>>>(buffers.a, 100);
  cudaGraph_t outer;
  CUDA_CHECK(cudaStreamEndCapture(buffers.one, &outer));
  cudaGraphExec_t both;
  CUDA_CHECK(cudaGraphInstantiate(&both, outer, 0));
  CUDA_CHECK(cudaGraphLaunch(both, buffers.one));
  CUDA_CHECK(cudaStreamSynchronize(buffers.one));
  printf("a graph in a graph: %zu nodes, %u\n", NodesOf(outer), First(buffers.a));
  CUDA_CHECK(cudaGraphExecDestroy(both));
  CUDA_CHECK(cudaGraphDestroy(outer));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaEventDestroy(fork));
  CUDA_CHECK(cudaEventDestroy(join));
}

// Each refusal, and how the capture ends after it.
static void Refused(Buffers& buffers) {
  cudaGraph_t graph = NULL;
  printf("the legacy stream: %d\n",
         (int)cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
  printf("no capture to end: %d\n", (int)cudaStreamEndCapture(buffers.one, &graph));

  CUDA_CHECK(cudaStreamBeginCapture(buffers.one, cudaStreamCaptureModeRelaxed));
  printf("twice: %d\n", (int)cudaStreamBeginCapture(buffers.one, cudaStreamCaptureModeRelaxed));
  printf("a query: %d\n", (int)cudaStreamQuery(buffers.one));
  printf("work after it: %d\n", (int)cudaMemsetAsync(buffers.a, 0, 4, buffers.one));
  printf("the end after it: %d\n", (int)cudaStreamEndCapture(buffers.one, &graph));

  CUDA_CHECK(cudaStreamBeginCapture(buffers.one, cudaStreamCaptureModeRelaxed));
  printf("a wait: %d\n", (int)cudaStreamSynchronize(buffers.one));
  printf("the end after it: %d\n", (int)cudaStreamEndCapture(buffers.one, &graph));

  cudaEvent_t event;
  CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CUDA_CHECK(cudaStreamBeginCapture(buffers.one, cudaStreamCaptureModeRelaxed));
  CUDA_CHECK(cudaEventRecord(event, buffers.one));
  CUDA_CHECK(cudaStreamWaitEvent(buffers.two, event, 0));
  Add<<<kBlocks, 128, 0, buffers.two>>>(buffers.b, 1);
  printf("the end elsewhere: %d\n", (int)cudaStreamEndCapture(buffers.two, &graph));
  printf("not joined back: %d\n", (int)cudaStreamEndCapture(buffers.one, &graph));

  CUDA_CHECK(cudaEventRecord(event, buffers.two));
  CUDA_CHECK(cudaStreamBeginCapture(buffers.one, cudaStreamCaptureModeRelaxed));
  printf("an event from outside: %d\n", (int)cudaStreamWaitEvent(buffers.one, event, 0));
  printf("the end after it: %d\n", (int)cudaStreamEndCapture(buffers.one, &graph));

  cudaStream_t blocking;
  CUDA_CHECK(cudaStreamCreate(&blocking));
  CUDA_CHECK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  printf("work in the legacy stream: %d\n", (int)cudaMemsetAsync(buffers.a, 0, 4, 0));
  printf("the end after it: %d\n", (int)cudaStreamEndCapture(blocking, &graph));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaStreamDestroy(blocking));
  CUDA_CHECK(cudaStreamSynchronize(buffers.one));
  CUDA_CHECK(cudaStreamSynchronize(buffers.two));
  CUDA_CHECK(cudaEventDestroy(event));
  (void)cudaGetLastError();
}

// What a stream or a graph that goes away leaves of its capture.
static void Destroyed(Buffers& buffers) {
  cudaEvent_t event;
  cudaStream_t third;
  cudaGraph_t graph = NULL;
  CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CUDA_CHECK(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamBeginCapture(buffers.one, cudaStreamCaptureModeRelaxed));
  CUDA_CHECK(cudaEventRecord(event, buffers.one));
  printf("the legacy stream waits for it: %d\n",
         (int)cudaStreamWaitEvent(cudaStreamLegacy, event, 0));
  CUDA_CHECK(cudaStreamWaitEvent(third, event, 0));
  CUDA_CHECK(cudaStreamDestroy(third));
  printf("the end without one of its streams: %d\n",
         (int)cudaStreamEndCapture(buffers.one, &graph));

  size_t count = 0;
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t* nodes = NULL;
  CUDA_CHECK(cudaStreamBeginCapture(buffers.one, cudaStreamCaptureModeRelaxed));
  Add<<<kBlocks, 128, 0, buffers.one>>>(buffers.a, 1);
  CUDA_CHECK(cudaStreamGetCaptureInfo(buffers.one, &status, NULL, NULL, &nodes, NULL, &count));
  printf("status %d, behind %zu\n", (int)status, count);
  CUDA_CHECK(cudaGraphDestroyNode(nodes[0]));
  CUDA_CHECK(cudaStreamGetCaptureInfo(buffers.one, &status, NULL, NULL, &nodes, NULL, &count));
  printf("status %d, behind %zu\n", (int)status, count);
  Add<<<kBlocks, 128, 0, buffers.one>>>(buffers.a, 1);
  CUDA_CHECK(cudaStreamEndCapture(buffers.one, &graph));
  printf("%zu nodes\n", NodesOf(graph));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaEventDestroy(event));
  (void)cudaGetLastError();
}

// A loop that makes its graph anew each time, as some programs do.
static void Anew(Buffers& buffers) {
  CUDA_CHECK(cudaMemset(buffers.a, 0, kCount * sizeof(unsigned)));
  CUDA_CHECK(cudaDeviceSynchronize());
  for (unsigned round = 0; round < 30; ++round) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA_CHECK(cudaStreamBeginCapture(buffers.one, cudaStreamCaptureModeGlobal));
    Multiply<<<kBlocks, 128, 0, buffers.one>>>(buffers.a, 5);
    Add<<<kBlocks, 128, 0, buffers.one>>>(buffers.a, round);
    CUDA_CHECK(cudaStreamEndCapture(buffers.one, &graph));
    CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_CHECK(cudaGraphLaunch(exec, buffers.one));
    CUDA_CHECK(cudaGraphExecDestroy(exec));
    CUDA_CHECK(cudaGraphDestroy(graph));
  }
  CUDA_CHECK(cudaStreamSynchronize(buffers.one));
  printf("made anew: %08x\n", First(buffers.a));
}

int main() {
  Buffers buffers;
  const size_t bytes = kCount * sizeof(unsigned);
  CUDA_CHECK(cudaMalloc(&buffers.a, bytes));
  CUDA_CHECK(cudaMalloc(&buffers.b, bytes));
  CUDA_CHECK(cudaMallocHost(&buffers.pinned, bytes));
  CUDA_CHECK(cudaStreamCreateWithFlags(&buffers.one, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&buffers.two, cudaStreamNonBlocking));
  OneStream(buffers);
  TwoStreams(buffers);
  Refused(buffers);
  Destroyed(buffers);
  Anew(buffers);
  CUDA_CHECK(cudaStreamDestroy(buffers.one));
  CUDA_CHECK(cudaStreamDestroy(buffers.two));
  CUDA_CHECK(cudaFreeHost(buffers.pinned));
  CUDA_CHECK(cudaFree(buffers.a));
  CUDA_CHECK(cudaFree(buffers.b));
  return 0;
}
