// A kernel writes to an address that is mapped nowhere: the error is sticky, and its own program
// sees it everywhere.
#include "check.h"

__global__ void Stray(int* values, int offset) {
  if (blockIdx.x == 2 && threadIdx.x == 5) values[1ll * offset * (1 << 28)] = 1;
}

int main() {
  int* device;
  CUDA_CHECK(cudaMalloc(&device, 4096));
  Stray<<<4, 32>>>(device, 1000);
  printf("launch %d\n", cudaGetLastError());
  printf("synchronise %d\n", cudaDeviceSynchronize());
  int value = 0;
  printf("copy %d\n", cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
  printf("allocate %d\n", cudaMalloc(&device, 4096));
  return 0;
}
