// Module variables: device and constant memory by symbol, written by the host, by kernels, and kept
// between launches.
#include "check.h"

__device__ int counter = 100;
__device__ float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__constant__ float scale[2] = {0.5f, 10.0f};

__global__ void Use(float* out) {
  const int i = threadIdx.x;
  out[i] = table[i] * scale[0] + scale[1];
  table[i] += 1.0f;
  if (i == 0) counter += 1;
}

int main() {
  float *device, host[8];
  const float new_scale[2] = {2.0f, -1.0f};
  int value = 0;
  CUDA_CHECK(cudaMalloc(&device, sizeof(host)));
  for (int round = 0; round < 3; ++round) {
    Use<<<1, 8>>>(device);
    CUDA_CHECK(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
    printf("round %d: %g %g, counter %d\n", round, host[0], host[7], value);
    if (round == 1) CUDA_CHECK(cudaMemcpyToSymbol(scale, new_scale, sizeof(new_scale)));
  }
  void* address = nullptr;
  size_t bytes = 0;
  CUDA_CHECK(cudaGetSymbolAddress(&address, table));
  CUDA_CHECK(cudaGetSymbolSize(&bytes, table));
  CUDA_CHECK(cudaMemcpy(host, address, bytes, cudaMemcpyDeviceToHost));
  printf("table: %zu bytes, %g %g\n", bytes, host[0], host[7]);
  CUDA_CHECK(cudaFree(device));
  return 0;
}
