// A loop that runs far ahead of its device: 150 iterations of two kernels of 10 ms each, queued at
// once.
#include "check.h"

__device__ unsigned long long Now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void Spin(unsigned* word) {
  const unsigned long long start = Now();
  while (Now() - start < 10'000'000) {
  }
  ++*word;
}

int main() {
  unsigned* word;
  CUDA_CHECK(cudaMalloc(&word, sizeof *word));
  for (int i = 0; i < 150; ++i) {
    CUDA_CHECK(cudaMemsetAsync(word, 0, sizeof *word));
    Spin<<<1, 1>>>(word);
    Spin<<<1, 1>>>(word);
  }
  printf("queued\n");
  fflush(stdout);
  CUDA_CHECK(cudaDeviceSynchronize());
  return 0;
}
