// What a kernel prints reaches its own program's standard output, at a synchronisation, in the
// order of the launches.
#include "check.h"

__global__ void Say(int round) {
  if (threadIdx.x % 16 == 0)
    printf("round %d block %d thread %d: %.3f %s\n", round, blockIdx.x, threadIdx.x, round * 1.5,
           "text");
}

int main() {
  for (int round = 0; round < 3; ++round) {
    Say<<<1, 32>>>(round);
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  printf("done\n");
  return 0;
}
