// A graph that copies from memory which was freed after the graph was made: the launch is taken,
// and then the device has faulted, for its own program alone.
#include "check.h"

int main() {
  const size_t bytes = size_t{512} << 20;
  char *large, *small;
  CUDA_CHECK(cudaMalloc(&large, bytes));
  CUDA_CHECK(cudaMalloc(&small, 4096));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  cudaGraphNode_t node, fill;
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  CUDA_CHECK(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, small, large + bytes / 2, 4096,
                                      cudaMemcpyDeviceToDevice));
  cudaMemsetParams params = {small, 0, 7, 1, 64, 1};
  CUDA_CHECK(cudaGraphAddMemsetNode(&fill, graph, &node, 1, &params));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(exec, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaFree(large));
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("launch %d\n", cudaGraphLaunch(exec, stream));
  printf("synchronise %d\n", cudaStreamSynchronize(stream));
  printf("allocate %d\n", cudaMalloc(&large, 4096));
  return 0;
}
