// One kernel that does not end, or a while node of short kernels with the argument `while`;
// "started" is printed once it runs.
#include <sched.h>

#include "check.h"

__global__ void Endless(volatile unsigned* begun) {
  *begun = 1;
  __threadfence_system();
  while (*begun != 0) {
  }
}

__global__ void Begin(volatile unsigned* begun) { *begun = 1; }

// Nobody sets the condition of the node.
static void LaunchWhile(unsigned* begun) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNodeParams loop = {cudaGraphNodeTypeConditional};
  loop.conditional.type = cudaGraphCondTypeWhile;
  loop.conditional.size = 1;
  CUDA_CHECK(cudaGraphConditionalHandleCreate(&loop.conditional.handle, graph, 1,
                                              cudaGraphCondAssignDefault));
  CUDA_CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &loop));
  void* params[] = {&begun};
  cudaKernelNodeParams kernel = {};
  kernel.func = (void*)Begin;
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.kernelParams = params;
  CUDA_CHECK(cudaGraphAddKernelNode(&node, loop.conditional.phGraph_out[0], nullptr, 0, &kernel));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(exec, nullptr));
}

int main(int argc, char** argv) {
  unsigned* begun;
  CUDA_CHECK(cudaMallocHost(&begun, sizeof *begun));
  *begun = 0;
  if (argc > 1) {
    LaunchWhile(begun);
  } else {
    Endless<<<1, 1>>>(begun);
  }
  CUDA_CHECK(cudaGetLastError());
  while (*static_cast<volatile unsigned*>(begun) == 0) sched_yield();
  printf("started\n");
  fflush(stdout);
  CUDA_CHECK(cudaDeviceSynchronize());
  return 0;
}
