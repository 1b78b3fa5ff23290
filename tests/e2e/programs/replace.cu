// replace FIRST SECOND: SECOND MiB in the place of FIRST MiB that were freed, on a device that has
// no room for both, while a kernel keeps the device busy: the program's own memory comes back to
// it.
#include <cstdlib>

#include "check.h"

// Takes a while, and writes only at the end.
__global__ void SlowFill(unsigned* values, unsigned value, int rounds) {
  unsigned x = value;
  for (int round = 0; round < rounds; ++round) x = x * 1664525u + 1013904223u;
  values[threadIdx.x] = x | 1;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t first = size_t{strtoul(argv[1], nullptr, 10)} << 20,
               second = size_t{strtoul(argv[2], nullptr, 10)} << 20;
  cudaStream_t stream;
  unsigned* small;
  CUDA_CHECK(cudaMalloc((void**)&small, 32 * sizeof(unsigned)));
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < 3; ++round) {
    unsigned *old, *fresh, value = 1;
    CUDA_CHECK(cudaMalloc((void**)&old, first));
    CUDA_CHECK(cudaFree(old));
    SlowFill<<<1, 32, 0, stream>>>(small, 1, 300000);
    CUDA_CHECK(cudaMalloc((void**)&fresh, second));
    CUDA_CHECK(cudaMemsetAsync(fresh, 0, second, stream));
    CUDA_CHECK(cudaMemcpyAsync(&value, fresh, sizeof value, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    printf("round %d: %u\n", round, value);
    CUDA_CHECK(cudaFree(fresh));
  }
  CUDA_CHECK(cudaFree(small));
  return 0;
}
