// As rounds.cu, with executable graphs: graph_rounds COUNT MEMORY [step]. One is launched in every
// round with another parameter; between rounds nothing of it is in flight.
#include <string.h>
#include <unistd.h>

#include "check.h"

constexpr int kCount = 1 << 12;

__global__ void Mix(const unsigned* from, unsigned* to, unsigned round) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) to[i] = (from[i] ^ round) * 16777619u + from[(i + 1) % kCount];
}

__global__ void Choose(cudaGraphConditionalHandle handle, unsigned value) {
  cudaGraphSetConditional(handle, value);
}

static void Rest(bool step) {
  char byte;
  volatile unsigned batch = 0;
  if (!step) {
    for (int i = 0; i < 2'000'000; ++i) batch = batch * 16777619u + i;
  } else if (read(0, &byte, 1) < 0) {
    exit(2);
  }
}

static unsigned Hash(const unsigned* words) {
  unsigned hash = 2166136261u;
  for (int i = 0; i < kCount; ++i) hash = (hash ^ words[i]) * 16777619u;
  return hash;
}

// The body of an if node behind `before`, whose condition a kernel sets; the node goes to `node`.
static cudaGraph_t If(cudaGraph_t graph, cudaGraphNode_t before, cudaGraphNode_t* node) {
  cudaGraphNodeParams branch = {cudaGraphNodeTypeConditional};
  branch.conditional.type = cudaGraphCondTypeIf;
  branch.conditional.size = 1;
  CUDA_CHECK(cudaGraphConditionalHandleCreate(&branch.conditional.handle, graph, 0,
                                              cudaGraphCondAssignDefault));
  unsigned one = 1;
  void* params[] = {&branch.conditional.handle, &one};
  cudaKernelNodeParams kernel;
  memset(&kernel, 0, sizeof kernel);
  kernel.func = reinterpret_cast<void*>(&Choose);
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.kernelParams = params;
  cudaGraphNode_t choose;
  CUDA_CHECK(cudaGraphAddKernelNode(&choose, graph, &before, 1, &kernel));
  CUDA_CHECK(cudaGraphAddNode(node, graph, &choose, nullptr, 1, &branch));
  return branch.conditional.phGraph_out[0];
}

static cudaKernelNodeParams Kernel(void** params) {
  cudaKernelNodeParams kernel;
  memset(&kernel, 0, sizeof kernel);
  kernel.func = reinterpret_cast<void*>(&Mix);
  kernel.gridDim = dim3(kCount / 256);
  kernel.blockDim = dim3(256);
  kernel.kernelParams = params;
  return kernel;
}

int main(int argc, char** argv) {
  const long rounds = strtol(argv[1], nullptr, 10);
  const bool pinned = strcmp(argv[2], "pinned") == 0, step = argc > 3;
  unsigned *a, *b, round = 0;
  static unsigned host[kCount];
  const size_t bytes = sizeof host;
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  for (unsigned** words : {&a, &b})
    CUDA_CHECK(pinned ? cudaMallocHost(words, bytes) : cudaMalloc(words, bytes));
  for (int i = 0; i < kCount; ++i) host[i] = i * 2654435761u;
  CUDA_CHECK(cudaMemcpy(a, host, bytes, cudaMemcpyDefault));

  // a -> b by a kernel whose parameter changes, b -> a by one that stays, in the body of a
  // conditional node, then a copy.
  void* there[] = {&a, &b, &round};
  unsigned seven = 7;
  void* back[] = {&b, &a, &seven};
  cudaGraph_t graph;
  cudaGraphNode_t first, second, third, branch;
  cudaGraphExec_t exec;
  cudaKernelNodeParams kernel = Kernel(there);
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  CUDA_CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &kernel));
  cudaGraph_t body = If(graph, first, &branch);
  kernel = Kernel(back);
  CUDA_CHECK(cudaGraphAddKernelNode(&second, body, nullptr, 0, &kernel));
  CUDA_CHECK(
      cudaGraphAddMemcpyNode1D(&third, graph, &branch, 1, b, a, bytes / 2, cudaMemcpyDefault));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  // One that is gone must not come back.
  cudaGraphExec_t gone;
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  CUDA_CHECK(cudaGraphAddKernelNode(&second, graph, nullptr, 0, &kernel));
  CUDA_CHECK(cudaGraphAddKernelNode(&second, graph, nullptr, 0, &kernel));
  CUDA_CHECK(cudaGraphInstantiate(&gone, graph, 0));
  CUDA_CHECK(cudaGraphExecDestroy(gone));
  CUDA_CHECK(cudaGraphDestroy(graph));

  printf("started\n");
  fflush(stdout);
  for (; round < rounds; ++round) {
    Rest(step);
    kernel = Kernel(there);
    CUDA_CHECK(cudaGraphExecKernelNodeSetParams(exec, first, &kernel));
    CUDA_CHECK(cudaGraphLaunch(exec, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaMemcpy(host, a, bytes, cudaMemcpyDefault));
    printf("round %u: %08x\n", round, Hash(host));
    fflush(stdout);
  }
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaStreamDestroy(stream));
  printf("done\n");
  return 0;
}
