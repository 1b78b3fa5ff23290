// cudaDeviceReset gives back all that a program has: rounds that the device could not hold
// together.
#include "check.h"

int main() {
  const int kRounds = 60;
  const size_t bytes = size_t{256} << 20;
  for (int round = 0; round < kRounds; ++round) {
    unsigned char* device;
    unsigned char last = 0;
    CUDA_CHECK(cudaMalloc((void**)&device, bytes));
    CUDA_CHECK(cudaMemset(device + bytes - 4096, round + 1, 4096));
    CUDA_CHECK(cudaMemcpy(&last, device + bytes - 1, 1, cudaMemcpyDeviceToHost));
    printf("round %d: %d\n", round, last);
    CUDA_CHECK(cudaDeviceReset());
  }
  size_t free_bytes = 0, total_bytes = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  printf("room for one more: %d\n", free_bytes >= bytes);
  return 0;
}
