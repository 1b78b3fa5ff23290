// Graphs built node by node: every type of node, queries, clones, updates, and what is refused.
#include "check.h"

#include <string.h>

#include <vector>

constexpr int kCount = 1 << 10;

__global__ void Multiply(unsigned* values, unsigned factor) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= factor;
}
__global__ void Add(unsigned* values, unsigned term) {
  values[blockIdx.x * blockDim.x + threadIdx.x] += term;
}

static CUfunction FunctionOf(const void* kernel) {
  cudaFunction_t function;
  CUDA_CHECK(cudaGetFuncBySymbol(&function, kernel));
  return (CUfunction)function;
}

static void Show(const char* what, CUdeviceptr device) {
  std::vector<unsigned> values(kCount);
  CHECK(cuMemcpyDtoH(values.data(), device, kCount * sizeof(unsigned)));
  unsigned sum = 0;
  for (unsigned value : values) sum = sum * 31 + value;
  printf("%s: %u, in all %08x\n", what, values[5], sum);
}

struct Kernel {
  CUdeviceptr device;
  unsigned number;
  void* params[2] = {&device, &number};
  CUDA_KERNEL_NODE_PARAMS_v2 node;
  Kernel(const void* kernel, CUdeviceptr to, unsigned value) : device(to), number(value) {
    memset(&node, 0, sizeof node);
    node.func = FunctionOf(kernel);
    node.gridDimX = kCount / 128;
    node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
    node.blockDimX = 128;
    node.kernelParams = params;
  }
};

static CUDA_MEMSET_NODE_PARAMS_v1 FillOf(CUdeviceptr device, unsigned value) {
  CUDA_MEMSET_NODE_PARAMS_v1 fill;
  memset(&fill, 0, sizeof fill);
  fill.dst = device;
  fill.value = value;
  fill.elementSize = 4;
  fill.width = kCount;
  fill.height = 1;
  return fill;
}

static CUDA_MEMCPY3D CopyOf(CUdeviceptr to, CUdeviceptr from, void* host_to,
                            const void* host_from) {
  CUDA_MEMCPY3D copy;
  memset(&copy, 0, sizeof copy);
  copy.dstMemoryType = host_to != NULL ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.srcMemoryType = host_from != NULL ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.srcDevice = from;
  copy.dstHost = host_to;
  copy.srcHost = host_from;
  copy.WidthInBytes = kCount * sizeof(unsigned);
  copy.Height = copy.Depth = 1;
  return copy;
}

// A clone with another factor updates the executable as a whole; another shape doesn't.
static void AsAWhole(CUgraphExec exec, CUgraph graph, CUgraphNode multiply, Kernel& times,
                     CUstream stream) {
  CUgraph clone;
  CHECK(cuGraphClone(&clone, graph));
  CUgraphNode copied;
  CHECK(cuGraphNodeFindInClone(&copied, multiply, clone));
  times.number = 2;
  CHECK(cuGraphKernelNodeSetParams(copied, &times.node));
  CUgraphExecUpdateResultInfo info;
  CHECK(cuGraphExecUpdate(exec, clone, &info));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  Show("updated as a whole", times.device);
  CUgraphNode extra;
  CHECK(cuGraphAddEmptyNode(&extra, clone, NULL, 0));
  const CUresult refused = cuGraphExecUpdate(exec, clone, &info);
  printf("another shape: %d, result %d\n", refused, (int)info.result);
  CHECK(cuGraphDestroyNode(extra));
  CHECK(cuGraphDestroy(clone));
}

// How lists are told, which dependencies are refused, and how long child graphs have names.
static void Shape() {
  CUgraph graph, outer, clone, child;
  CUgraphNode nodes[3], join = NULL, node, copied;
  CHECK(cuGraphCreate(&graph, 0));
  for (CUgraphNode& one : nodes) CHECK(cuGraphAddEmptyNode(&one, graph, NULL, 0));
  const CUgraphNode twice[] = {nodes[1], nodes[1]};
  printf("a dependency twice: %d\n", (int)cuGraphAddEmptyNode(&join, graph, twice, 2));
  CHECK(cuGraphAddEmptyNode(&join, graph, nodes, 3));
  printf("an edge twice: %d\n", (int)cuGraphAddDependencies(graph, nodes, &join, NULL, 1));
  printf("an edge to itself: %d\n", (int)cuGraphAddDependencies(graph, nodes, nodes, NULL, 1));
  for (size_t room = 2; room <= 4; ++room) {
    CUgraphNode told[4] = {join, join, join, join};
    size_t count = room;
    CHECK(cuGraphNodeGetDependencies(join, told, NULL, &count));
    printf("%zu dependencies in room for %zu; the fourth is %s\n", count, room,
           told[3] == NULL ? "null" : "as before");
  }
  CHECK(cuGraphCreate(&outer, 0));
  CHECK(cuGraphAddChildGraphNode(&node, outer, NULL, 0, graph));
  CHECK(cuGraphClone(&clone, outer));
  CHECK(cuGraphNodeFindInClone(&copied, node, clone));
  CHECK(cuGraphChildGraphNodeGetGraph(copied, &child));
  size_t count = 0;
  printf("the child of a clone: %d\n", (int)cuGraphGetNodes(child, NULL, &count));
  CHECK(cuGraphDestroyNode(copied));
  printf("after its node: %d\n", (int)cuGraphGetNodes(child, NULL, &count));
  CHECK(cuGraphDestroy(clone));
  CHECK(cuGraphDestroy(outer));
  CHECK(cuGraphDestroy(graph));
}

// fill -> multiply -> add, in two branches that a copy joins; launched, updated, launched.
static void Kernels(CUcontext context, CUstream stream, CUdeviceptr a, CUdeviceptr b) {
  CUgraph graph;
  CHECK(cuGraphCreate(&graph, 0));
  CUgraphNode fill_a, fill_b, multiply, add, join, copy;
  const CUDA_MEMSET_NODE_PARAMS_v1 three = FillOf(a, 3), seven = FillOf(b, 7);
  CHECK(cuGraphAddMemsetNode(&fill_a, graph, NULL, 0, &three, context));
  CHECK(cuGraphAddMemsetNode(&fill_b, graph, NULL, 0, &seven, context));
  Kernel times(reinterpret_cast<const void*>(&Multiply), a, 5);
  Kernel plus(reinterpret_cast<const void*>(&Add), b, 100);
  CHECK(cuGraphAddKernelNode(&multiply, graph, &fill_a, 1, &times.node));
  CHECK(cuGraphAddKernelNode(&add, graph, &fill_b, 1, &plus.node));
  const CUgraphNode both[] = {multiply, add};
  CHECK(cuGraphAddEmptyNode(&join, graph, both, 2));
  const CUDA_MEMCPY3D move = CopyOf(a + kCount * 2, b, NULL, NULL);
  CUDA_MEMCPY3D half = move;
  half.WidthInBytes /= 2;
  CHECK(cuGraphAddMemcpyNode(&copy, graph, &join, 1, &half, context));

  size_t nodes = 0, edges = 0, roots = 0, before = 0;
  CHECK(cuGraphGetNodes(graph, NULL, &nodes));
  CHECK(cuGraphGetRootNodes(graph, NULL, &roots));
  CHECK(cuGraphGetEdges(graph, NULL, NULL, NULL, &edges));
  CHECK(cuGraphNodeGetDependencies(join, NULL, NULL, &before));
  CUgraphNodeType type;
  CHECK(cuGraphNodeGetType(copy, &type));
  printf("%zu nodes, %zu roots, %zu edges, %zu before the join, type %d\n", nodes, roots, edges,
         before, (int)type);

  CUgraphExec exec;
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK(cuGraphUpload(exec, stream));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  Show("first launch", a);

  CUDA_KERNEL_NODE_PARAMS_v2 read;
  CHECK(cuGraphKernelNodeGetParams(multiply, &read));
  printf("multiply by %u, %u blocks\n", *static_cast<unsigned*>(read.kernelParams[1]),
         read.gridDimX);
  times.number = 11;
  CHECK(cuGraphExecKernelNodeSetParams(exec, multiply, &times.node));
  for (int i = 0; i < 5; ++i) CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  Show("other parameters", a);
  const CUDA_MEMSET_NODE_PARAMS_v1 nine = FillOf(a, 9);
  CHECK(cuGraphExecMemsetNodeSetParams(exec, fill_a, &nine, context));
  CHECK(cuGraphNodeSetEnabled(exec, add, 0));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  Show("another fill, no addition", a);

  AsAWhole(exec, graph, multiply, times, stream);

  // The executable outlives its graph. Streams take turns with it.
  CHECK(cuGraphDestroy(graph));
  CUstream other;
  CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 4; ++i) CHECK(cuGraphLaunch(exec, i % 2 == 0 ? stream : other));
  CHECK(cuCtxSynchronize());
  Show("two streams", a);
  CHECK(cuStreamDestroy(other));
  CHECK(cuGraphExecDestroy(exec));
}

static void CUDA_CB Count(void* data) { ++*static_cast<int*>(data); }

// What the host has a part in: functions, events, pageable memory, child graphs.
static void Host(CUcontext context, CUstream stream, CUdeviceptr a) {
  std::vector<unsigned> in(kCount, 21), out(kCount, 0);
  int calls = 0;
  CUevent event;
  CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
  CUgraph child;
  CHECK(cuGraphCreate(&child, 0));
  CUgraphNode times_two, plus_one;
  Kernel times(reinterpret_cast<const void*>(&Multiply), a, 2);
  Kernel plus(reinterpret_cast<const void*>(&Add), a, 1);
  CHECK(cuGraphAddKernelNode(&times_two, child, NULL, 0, &times.node));
  CHECK(cuGraphAddKernelNode(&plus_one, child, &times_two, 1, &plus.node));

  CUgraph graph;
  CHECK(cuGraphCreate(&graph, 0));
  CUgraphNode upload, first, function, second, record, download;
  const CUDA_MEMCPY3D up = CopyOf(a, 0, NULL, in.data()), down = CopyOf(0, a, out.data(), NULL);
  CHECK(cuGraphAddMemcpyNode(&upload, graph, NULL, 0, &up, context));
  CHECK(cuGraphAddChildGraphNode(&first, graph, &upload, 1, child));
  CUDA_HOST_NODE_PARAMS_v1 host = {&Count, &calls};
  CHECK(cuGraphAddHostNode(&function, graph, &first, 1, &host));
  CHECK(cuGraphAddChildGraphNode(&second, graph, &function, 1, child));
  CHECK(cuGraphAddEventRecordNode(&record, graph, &second, 1, event));
  CHECK(cuGraphAddMemcpyNode(&download, graph, &record, 1, &down, context));
  CHECK(cuGraphDestroy(child));  // the nodes have copies of their own
  CUgraphExec exec;
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (unsigned round = 0; round < 3; ++round) {
    in.assign(kCount, round);
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuEventSynchronize(event));
    CHECK(cuStreamSynchronize(stream));
    printf("round %u: %u, %d host calls, event %d\n", round, out[kCount - 1], calls,
           cuEventQuery(event));
  }
  CUgraph inside;
  CHECK(cuGraphChildGraphNodeGetGraph(first, &inside));
  size_t nodes = 0;
  CHECK(cuGraphGetNodes(inside, NULL, &nodes));
  printf("%zu nodes inside\n", nodes);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuEventDestroy(event));
}

// A long chain: its definition takes many messages.
static void Long(CUstream stream, CUdeviceptr a) {
  constexpr int kNodes = 2000;
  CUgraph graph;
  CHECK(cuGraphCreate(&graph, 0));
  CUgraphNode last = NULL;
  for (int i = 0; i < kNodes; ++i) {
    Kernel plus(reinterpret_cast<const void*>(&Add), a, i);
    CHECK(cuGraphAddKernelNode(&last, graph, i == 0 ? NULL : &last, i == 0 ? 0 : 1, &plus.node));
  }
  CUgraphExec exec;
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK(cuMemsetD32(a, 0, kCount));
  CHECK(cuCtxSynchronize());
  for (int i = 0; i < 2; ++i) CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  Show("a long chain", a);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}

static void Refused(CUcontext context, CUdeviceptr a) {
  CUgraph graph, second;
  CHECK(cuGraphCreate(&graph, 0));
  CHECK(cuGraphCreate(&second, 0));
  CUgraphNode one, two, foreign;
  CHECK(cuGraphAddEmptyNode(&one, graph, NULL, 0));
  CHECK(cuGraphAddEmptyNode(&two, graph, &one, 1));
  CHECK(cuGraphAddEmptyNode(&foreign, second, NULL, 0));
  CUgraphNode never;
  printf("a foreign dependency: %d\n", cuGraphAddEmptyNode(&never, graph, &foreign, 1));
  printf("an edge twice: %d\n", cuGraphAddDependencies(graph, &one, &two, NULL, 1));
  printf("an edge to itself: %d\n", cuGraphAddDependencies(graph, &one, &one, NULL, 1));
  Kernel plus(reinterpret_cast<const void*>(&Add), a, 1);
  plus.node.blockDimX = 4096;
  printf("too many threads: %d\n", cuGraphAddKernelNode(&never, graph, NULL, 0, &plus.node));
  CUDA_MEMSET_NODE_PARAMS_v1 fill = FillOf(a, 1);
  fill.elementSize = 3;
  printf("elements of 3 bytes: %d\n", cuGraphAddMemsetNode(&never, graph, NULL, 0, &fill, context));
  fill = FillOf(a, 1);
  fill.width = size_t{1} << 40;
  printf("too much memory: %d\n", cuGraphAddMemsetNode(&never, graph, NULL, 0, &fill, context));
  CUDA_MEMSET_NODE_PARAMS_v1 read;
  printf("of another type: %d\n", cuGraphMemsetNodeGetParams(one, &read));
  CHECK(cuGraphAddDependencies(graph, &two, &one, NULL, 1));
  CUgraphExec exec;
  printf("a cycle: %d\n", cuGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuGraphDestroy(second));
}

// Nodes inside a child graph change like others.
static void Children(CUcontext context, CUstream stream, CUdeviceptr a) {
  CUgraph child, parent, inner;
  CUgraphNode fill, multiply, outer, nodes[2];
  CUgraphExec exec;
  size_t count = 2;
  const CUDA_MEMSET_NODE_PARAMS_v1 three = FillOf(a, 3), four = FillOf(a, 4);
  Kernel times(reinterpret_cast<const void*>(&Multiply), a, 5);
  CHECK(cuGraphCreate(&child, 0));
  CHECK(cuGraphCreate(&parent, 0));
  CHECK(cuGraphAddMemsetNode(&fill, child, NULL, 0, &three, context));
  CHECK(cuGraphAddKernelNode(&multiply, child, &fill, 1, &times.node));
  CHECK(cuGraphAddChildGraphNode(&outer, parent, NULL, 0, child));
  CHECK(cuGraphChildGraphNodeGetGraph(outer, &inner));
  CHECK(cuGraphGetNodes(inner, nodes, &count));
  CHECK(cuGraphInstantiateWithFlags(&exec, parent, 0));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  Show("child graph", a);
  times.number = 7;
  CHECK(cuGraphExecKernelNodeSetParams(exec, nodes[1], &times.node));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  Show("its kernel changed", a);
  CHECK(cuGraphExecMemsetNodeSetParams(exec, nodes[0], &four, context));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  Show("its fill changed", a);
  printf("a child switched off: %d\n", cuGraphNodeSetEnabled(exec, outer, 0));
  CHECK(cuGraphNodeSetEnabled(exec, nodes[1], 0));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  Show("its kernel switched off", a);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(parent));
  CHECK(cuGraphDestroy(child));
}

int main() {
  CUdeviceptr a, b;
  CUcontext context;
  CUstream stream;
  CUDA_CHECK(cudaFree(NULL));
  CHECK(cuCtxGetCurrent(&context));
  CHECK(cuMemAlloc(&a, kCount * sizeof(unsigned)));
  CHECK(cuMemAlloc(&b, kCount * sizeof(unsigned)));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Shape();
  Kernels(context, stream, a, b);
  Host(context, stream, a);
  Children(context, stream, a);
  Long(stream, a);
  Refused(context, a);
  CHECK(cuStreamDestroy(stream));
  CHECK(cuMemFree(a));
  CHECK(cuMemFree(b));
  return 0;
}
