// Pinned memory is taken, used and given back, several times at the same size.
#include "check.h"

int main() {
  const size_t bytes = size_t{32} << 20;
  unsigned char* device;
  CUDA_CHECK(cudaMalloc((void**)&device, bytes));
  for (int round = 0; round < 3; ++round) {
    unsigned char* host;
    CUDA_CHECK(cudaMallocHost((void**)&host, bytes));
    CUDA_CHECK(cudaMemset(device, round + 1, bytes));
    CUDA_CHECK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    size_t right = 0;
    for (size_t i = 0; i < bytes; ++i) right += host[i] == round + 1;
    printf("round %d: %zu\n", round, right);
    CUDA_CHECK(cudaFreeHost(host));
  }
  CUDA_CHECK(cudaFree(device));
  return 0;
}
