// cudaDeviceReset of one device leaves what the program has on the other. Needs two devices.
#include "check.h"

static unsigned char* Filled(int device, int value) {
  const size_t bytes = size_t{4} << 20;
  unsigned char* memory;
  CUDA_CHECK(cudaSetDevice(device));
  CUDA_CHECK(cudaMalloc((void**)&memory, bytes));
  CUDA_CHECK(cudaMemset(memory, value, bytes));
  CUDA_CHECK(cudaDeviceSynchronize());
  return memory;
}

int main() {
  unsigned char* const kept = Filled(1, 7);
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  Filled(0, 9);
  CUDA_CHECK(cudaDeviceReset());
  CUDA_CHECK(cudaSetDevice(1));
  unsigned char first = 0;
  printf("copy %d", cudaMemcpy(&first, kept, 1, cudaMemcpyDeviceToHost));
  printf(": %d\n", first);
  printf("fill %d\n", cudaMemsetAsync(kept, 8, 1, stream));
  printf("stream %d\n", cudaStreamSynchronize(stream));
  printf("copy %d", cudaMemcpy(&first, kept, 1, cudaMemcpyDeviceToHost));
  printf(": %d\n", first);
  return 0;
}
