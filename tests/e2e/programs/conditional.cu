// Conditional nodes of graphs: if, else, while and switch, nested and filled by capture, launched
// many times and changed, and what is refused.
#include "check.h"

#include <string.h>

#include <vector>

__global__ void Add(unsigned* value, unsigned term) { *value += term; }
__global__ void SetTo(cudaGraphConditionalHandle handle, unsigned value) {
  cudaGraphSetConditional(handle, value);
}
// Goes on while the counter is above its bound.
__global__ void CountDown(cudaGraphConditionalHandle handle, unsigned* counter, unsigned bound) {
  *counter -= 1;
  cudaGraphSetConditional(handle, *counter > bound);
}
__global__ void SetFrom(cudaGraphConditionalHandle handle, const unsigned* value) {
  cudaGraphSetConditional(handle, *value);
}

static cudaStream_t stream;
static unsigned* words;  // of the device

static void Set(unsigned index, unsigned value) {
  CUDA_CHECK(cudaMemcpyAsync(words + index, &value, sizeof value, cudaMemcpyHostToDevice, stream));
}
static void Show(const char* what, unsigned count) {
  unsigned values[8];
  CUDA_CHECK(cudaMemcpy(values, words, sizeof values, cudaMemcpyDeviceToHost));
  printf("%s:", what);
  for (unsigned i = 0; i < count; ++i) printf(" %u", values[i]);
  printf("\n");
}
static void Clear() { CUDA_CHECK(cudaMemsetAsync(words, 0, 8 * sizeof *words, stream)); }

static cudaGraphConditionalHandle HandleOf(cudaGraph_t graph, unsigned value, unsigned flags) {
  cudaGraphConditionalHandle handle;
  CUDA_CHECK(cudaGraphConditionalHandleCreate(&handle, graph, value, flags));
  return handle;
}

static cudaError_t TryNode(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& after,
                           cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                           unsigned size, cudaGraph_t** bodies, cudaGraphNode_t* node) {
  cudaGraphNodeParams params = {cudaGraphNodeTypeConditional};
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = size;
  const cudaError_t result =
      cudaGraphAddNode(node, graph, after.data(), nullptr, after.size(), &params);
  *bodies = params.conditional.phGraph_out;
  return result;
}

static cudaGraph_t* Conditional(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& after,
                                cudaGraphConditionalHandle handle,
                                cudaGraphConditionalNodeType type, unsigned size,
                                cudaGraphNode_t* node = nullptr) {
  cudaGraph_t* bodies;
  cudaGraphNode_t made;
  CUDA_CHECK(TryNode(graph, after, handle, type, size, &bodies, &made));
  if (node != nullptr) *node = made;
  return bodies;
}

// A kernel node; returns it.
template <class... Args>
static cudaGraphNode_t Kernel(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& after,
                              void (*kernel)(Args...), Args... args) {
  void* pointers[] = {&args...};
  cudaKernelNodeParams params;
  memset(&params, 0, sizeof params);
  params.func = (void*)kernel;
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = pointers;
  cudaGraphNode_t node;
  CUDA_CHECK(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
  return node;
}

static cudaGraphExec_t Instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}
static void Launch(cudaGraphExec_t exec, unsigned times) {
  for (unsigned i = 0; i < times; ++i) CUDA_CHECK(cudaGraphLaunch(exec, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
}

static void IfAndElse() {
  cudaGraph_t graph;
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  const cudaGraphConditionalHandle handle = HandleOf(graph, 0, 0);
  const cudaGraphNode_t set =
      Kernel<cudaGraphConditionalHandle, const unsigned*>(graph, {}, SetFrom, handle, words + 7);
  cudaGraphNode_t branch;
  cudaGraph_t* const bodies = Conditional(graph, {set}, handle, cudaGraphCondTypeIf, 2, &branch);
  Kernel<unsigned*, unsigned>(bodies[0], {}, Add, words, 1u);
  const cudaGraphNode_t otherwise = Kernel<unsigned*, unsigned>(bodies[1], {}, Add, words + 1, 10u);
  Kernel<unsigned*, unsigned>(graph, {branch}, Add, words + 2, 100u);
  const cudaGraphExec_t exec = Instantiate(graph);
  Clear();
  Launch(exec, 3);
  Show("else", 3);
  Set(7, 5);
  Launch(exec, 4);
  Show("if", 3);
  // New parameters of a node in a body.
  unsigned* to = words + 3;
  unsigned term = 1000;
  void* pointers[] = {&to, &term};
  cudaKernelNodeParams params;
  memset(&params, 0, sizeof params);
  params.func = (void*)Add;
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = pointers;
  CUDA_CHECK(cudaGraphExecKernelNodeSetParams(exec, otherwise, &params));
  Set(7, 0);
  Launch(exec, 2);
  Show("changed", 4);
  cudaGraphNodeType type;
  CUDA_CHECK(cudaGraphNodeGetType(branch, &type));
  printf("conditional: %d\n", type == cudaGraphNodeTypeConditional);
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
}

static void While() {
  cudaGraph_t graph;
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  const cudaGraphConditionalHandle handle = HandleOf(graph, 1, cudaGraphCondAssignDefault);
  cudaGraph_t body = Conditional(graph, {}, handle, cudaGraphCondTypeWhile, 1)[0];
  // Captured into the body.
  CUDA_CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                           cudaStreamCaptureModeGlobal));
  Add<<<1, 1, 0, stream>>>(words + 1, 3);
  CUDA_CHECK(
      cudaMemcpyAsync(words + 2, words + 1, sizeof *words, cudaMemcpyDeviceToDevice, stream));
  CountDown<<<1, 1, 0, stream>>>(handle, words, 0);
  CUDA_CHECK(cudaStreamEndCapture(stream, nullptr));  // the graph is known
  size_t nodes;
  CUDA_CHECK(cudaGraphGetNodes(body, nullptr, &nodes));
  printf("captured into the body: %zu nodes\n", nodes);
  const cudaGraphExec_t exec = Instantiate(graph);
  Clear();
  for (unsigned rounds = 1; rounds < 40; rounds += 13) {
    Set(0, rounds);
    Launch(exec, 1);
    Show("while", 3);
  }
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
}

static void Switch() {
  cudaGraph_t graph;
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  const cudaGraphConditionalHandle handle = HandleOf(graph, 9, cudaGraphCondAssignDefault);
  const cudaGraphNode_t set =
      Kernel<cudaGraphConditionalHandle, unsigned>(graph, {}, SetTo, handle, 2u);
  cudaGraph_t* const bodies = Conditional(graph, {set}, handle, cudaGraphCondTypeSwitch, 4);
  for (unsigned i = 0; i < 4; ++i)
    Kernel<unsigned*, unsigned>(bodies[i], {}, Add, words + i, i + 1);
  const cudaGraphExec_t exec = Instantiate(graph);
  Clear();
  for (unsigned value = 0; value < 7; ++value) {
    cudaGraphConditionalHandle same = handle;
    void* pointers[] = {&same, &value};
    cudaKernelNodeParams params;
    memset(&params, 0, sizeof params);
    params.func = (void*)SetTo;
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = pointers;
    CUDA_CHECK(cudaGraphExecKernelNodeSetParams(exec, set, &params));
    Launch(exec, value + 1);
  }
  Show("switch", 4);
  CUDA_CHECK(cudaGraphNodeSetEnabled(exec, set, 0));  // the default value holds: no body
  Launch(exec, 3);
  Show("default", 4);
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
}

// A loop of loops, with a choice in the inner one, behind a host function and before another.
static cudaGraph_t Nested(unsigned rounds, unsigned term) {
  static unsigned calls = 0;
  cudaGraph_t graph;
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  cudaHostNodeParams call = {[](void* data) { ++*(unsigned*)data; }, &calls};
  cudaGraphNode_t before, loop, behind;
  CUDA_CHECK(cudaGraphAddHostNode(&before, graph, nullptr, 0, &call));
  const cudaGraphConditionalHandle outer = HandleOf(graph, 1, cudaGraphCondAssignDefault);
  const cudaGraphConditionalHandle inner = HandleOf(graph, 1, cudaGraphCondAssignDefault);
  cudaGraph_t body = Conditional(graph, {before}, outer, cudaGraphCondTypeWhile, 1, &loop)[0];
  CUDA_CHECK(cudaGraphAddHostNode(&behind, graph, &loop, 1, &call));
  cudaMemsetParams fill;
  memset(&fill, 0, sizeof fill);
  fill.dst = words + 1;
  fill.value = rounds;
  fill.elementSize = 4;
  fill.width = fill.height = 1;
  cudaGraphNode_t filled;
  CUDA_CHECK(cudaGraphAddMemsetNode(&filled, body, nullptr, 0, &fill));
  const cudaGraphNode_t again =
      Kernel<cudaGraphConditionalHandle, unsigned>(body, {filled}, SetTo, inner, 1u);
  cudaGraphNode_t in;
  cudaGraph_t in_body = Conditional(body, {again}, inner, cudaGraphCondTypeWhile, 1, &in)[0];
  Kernel<cudaGraphConditionalHandle, unsigned*, unsigned>(body, {in}, CountDown, outer, words, 0u);
  const cudaGraphNode_t counted = Kernel<cudaGraphConditionalHandle, unsigned*, unsigned>(
      in_body, {}, CountDown, inner, words + 1, 0u);
  const cudaGraphConditionalHandle choice = HandleOf(in_body, 0, 0);
  const cudaGraphNode_t chosen = Kernel<cudaGraphConditionalHandle, const unsigned*>(
      in_body, {counted}, SetFrom, choice, words + 1);
  cudaGraph_t* const branches = Conditional(in_body, {chosen}, choice, cudaGraphCondTypeIf, 2);
  cudaGraph_t child;
  CUDA_CHECK(cudaGraphCreate(&child, 0));
  const cudaGraphNode_t first = Kernel<unsigned*, unsigned>(child, {}, Add, words + 2, term);
  Kernel<unsigned*, unsigned>(child, {first}, Add, words + 3, 1u);
  cudaGraphNode_t ignored;
  CUDA_CHECK(cudaGraphAddChildGraphNode(&ignored, branches[0], nullptr, 0, child));
  CUDA_CHECK(cudaGraphDestroy(child));
  Kernel<unsigned*, unsigned>(branches[1], {}, Add, words + 4, 1u);
  CUDA_CHECK(cudaGraphAddEmptyNode(&ignored, branches[1], nullptr, 0));
  return graph;
}

static void NestedLoops() {
  cudaGraph_t graph = Nested(4, 7);
  const cudaGraphExec_t exec = Instantiate(graph);
  Clear();
  for (unsigned rounds = 1; rounds < 4; ++rounds) {
    Set(0, rounds);
    Launch(exec, 1);
    Show("nested", 5);
  }
  cudaGraph_t other = Nested(3, 1000);
  cudaGraphExecUpdateResultInfo info;
  CUDA_CHECK(cudaGraphExecUpdate(exec, other, &info));
  Clear();
  Set(0, 2);
  Launch(exec, 1);
  Show("updated", 5);
  CUDA_CHECK(cudaGraphDestroy(other));
  CUDA_CHECK(cudaGraphDestroy(graph));
  Set(0, 2);
  Launch(exec, 1);
  Show("without its graph", 5);
  CUDA_CHECK(cudaGraphExecDestroy(exec));
}

// The node joins a capture that is under way, and another stream captures into its body.
static void WithinACapture() {
  cudaStream_t inner;
  cudaStreamCaptureStatus status;
  cudaGraph_t graph;
  const cudaGraphNode_t* tail;
  size_t count;
  CUDA_CHECK(cudaStreamCreateWithFlags(&inner, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph));
  const cudaGraphConditionalHandle handle = HandleOf(graph, 0, cudaGraphCondAssignDefault);
  SetFrom<<<1, 1, 0, stream>>>(handle, words + 7);
  CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &tail, nullptr, &count));
  cudaGraphNode_t branch;
  cudaGraph_t body = Conditional(graph, std::vector<cudaGraphNode_t>(tail, tail + count), handle,
                                 cudaGraphCondTypeIf, 1, &branch)[0];
  CUDA_CHECK(cudaStreamUpdateCaptureDependencies(stream, &branch, nullptr, 1,
                                                 cudaStreamSetCaptureDependencies));
  CUDA_CHECK(cudaStreamBeginCaptureToGraph(inner, body, nullptr, nullptr, 0,
                                           cudaStreamCaptureModeRelaxed));
  Add<<<1, 1, 0, inner>>>(words, 1);
  CUDA_CHECK(cudaStreamEndCapture(inner, nullptr));
  Add<<<1, 1, 0, stream>>>(words + 1, 1);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  const cudaGraphExec_t exec = Instantiate(graph);
  Clear();
  Launch(exec, 2);
  Set(7, 1);
  Launch(exec, 3);
  Show("within a capture", 2);
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaStreamDestroy(inner));
}

static void Refused() {
  cudaGraph_t graph, other, copy, *bodies;
  cudaGraphNode_t node;
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  CUDA_CHECK(cudaGraphCreate(&other, 0));
  cudaGraphConditionalHandle handle;
  printf("flags: %d\n", cudaGraphConditionalHandleCreate(&handle, graph, 0, 2));
  handle = HandleOf(graph, 0, cudaGraphCondAssignDefault);
  printf("foreign graph: %d\n", TryNode(other, {}, handle, cudaGraphCondTypeIf, 1, &bodies, &node));
  printf("no handle: %d\n", TryNode(graph, {}, 77, cudaGraphCondTypeIf, 1, &bodies, &node));
  printf("no body: %d\n", TryNode(graph, {}, handle, cudaGraphCondTypeIf, 0, &bodies, &node));
  printf("three bodies: %d\n", TryNode(graph, {}, handle, cudaGraphCondTypeIf, 3, &bodies, &node));
  printf("two loops: %d\n", TryNode(graph, {}, handle, cudaGraphCondTypeWhile, 2, &bodies, &node));
  cudaGraphExec_t exec, second;
  cudaGraphInstantiateParams params;
  memset(&params, 0, sizeof params);
  printf("unused: %d", cudaGraphInstantiateWithParams(&exec, graph, &params));
  printf(", %d\n", params.result_out);
  bodies = Conditional(graph, {}, handle, cudaGraphCondTypeIf, 1, &node);
  cudaGraphNode_t again;
  cudaGraph_t* none;
  printf("taken: %d\n", TryNode(graph, {}, handle, cudaGraphCondTypeIf, 1, &none, &again));
  printf("clone: %d\n", cudaGraphClone(&copy, graph));
  printf("child: %d\n", cudaGraphAddChildGraphNode(&again, other, nullptr, 0, graph));
  printf("body destroyed: %d\n", cudaGraphDestroy(bodies[0]));
  exec = Instantiate(graph);
  printf("twice: %d\n", cudaGraphInstantiate(&second, graph, 0));
  printf("disabled: %d\n", cudaGraphNodeSetEnabled(exec, node, 0));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  printf("captured: %d", cudaGraphLaunch(exec, stream));
  printf(", %d\n", cudaStreamEndCapture(stream, &copy));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  cudaHostNodeParams call = {[](void*) {}, nullptr};
  CUDA_CHECK(cudaGraphAddHostNode(&again, bodies[0], nullptr, 0, &call));
  printf("host function in a body: %d\n", cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphDestroyNode(again));
  exec = Instantiate(graph);
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroyNode(node));  // the handle is free again
  Conditional(graph, {}, handle, cudaGraphCondTypeWhile, 1);
  exec = Instantiate(graph);
  Launch(exec, 1);
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaGraphDestroy(other));
  (void)cudaGetLastError();
}

int main() {
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaMalloc(&words, 8 * sizeof *words));
  IfAndElse();
  While();
  Switch();
  NestedLoops();
  WithinACapture();
  Refused();
  CUDA_CHECK(cudaFree(words));
  return 0;
}
