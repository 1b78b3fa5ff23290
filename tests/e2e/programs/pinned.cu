// Pinned memory is taken, used and given back, several times at the same size.
#include "check.h"

__global__ void Busy(int* out, int rounds) {
  int x = threadIdx.x;
  for (int i = 0; i < rounds; ++i) x = x * 1664525 + 1013904223;
  out[threadIdx.x] = x;
}

// Pinned memory may be written again when a copy from it has returned, whatever was to be done
// before the copy.
void Reused() {
  constexpr int kCount = 1000;
  int *device, *host;
  CUDA_CHECK(cudaMalloc((void**)&device, 2 * kCount * sizeof(int)));
  CUDA_CHECK(cudaMallocHost((void**)&host, kCount * sizeof(int)));
  int right = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < kCount; ++i) host[i] = i + round;
    Busy<<<1, 256>>>(device + kCount, 200000);
    CUDA_CHECK(cudaMemcpy(device, host, kCount * sizeof(int), cudaMemcpyHostToDevice));
    for (int i = 0; i < kCount; ++i) host[i] = -1;
    CUDA_CHECK(cudaMemcpy(host, device, kCount * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kCount; ++i) right += host[i] == i + round;
  }
  printf("written again: %d\n", right);
  CUDA_CHECK(cudaFreeHost(host));
  CUDA_CHECK(cudaFree(device));
}

int main() {
  Reused();
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
