// A program that allocates more and more and gives nothing back; in the end all of it is as
// written.
#include "check.h"

int main() {
  const int kBlocks = 8;
  const size_t bytes = size_t{32} << 20;
  unsigned char *blocks[kBlocks], ends[2];
  for (int i = 0; i < kBlocks; ++i) {
    CUDA_CHECK(cudaMalloc((void**)&blocks[i], bytes));
    CUDA_CHECK(cudaMemset(blocks[i], i + 1, bytes));
    CUDA_CHECK(cudaDeviceSynchronize());
    printf("block %d\n", i);
    fflush(stdout);
  }
  for (int i = 0; i < kBlocks; ++i) {
    CUDA_CHECK(cudaMemcpy(&ends[0], blocks[i], 1, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(&ends[1], blocks[i] + bytes - 1, 1, cudaMemcpyDeviceToHost));
    printf("block %d: %d %d\n", i, ends[0], ends[1]);
  }
  return 0;
}
