// freed_copies CALL: a program without tricks that copies from, or fills, memory which it has
// freed. What the call and the device say is the output.
#include <string.h>

#include "check.h"

static cudaError_t Call(const char* name, char* freed, char* other, char* host) {
  if (strcmp(name, "d2d") == 0) return cudaMemcpy(other, freed, 4096, cudaMemcpyDeviceToDevice);
  if (strcmp(name, "default") == 0) return cudaMemcpy(other, freed, 4096, cudaMemcpyDefault);
  if (strcmp(name, "async") == 0)
    return cudaMemcpyAsync(other, freed, 4096, cudaMemcpyDeviceToDevice, nullptr);
  if (strcmp(name, "rows") == 0)
    return cudaMemcpy2D(other, 128, freed, 256, 64, 8, cudaMemcpyDeviceToDevice);
  if (strcmp(name, "rows_to_host") == 0)
    return cudaMemcpy2D(host, 128, freed, 256, 64, 8, cudaMemcpyDeviceToHost);
  if (strcmp(name, "d2h") == 0) return cudaMemcpy(host, freed, 4096, cudaMemcpyDeviceToHost);
  if (strcmp(name, "h2d") == 0) return cudaMemcpy(freed, host, 4096, cudaMemcpyHostToDevice);
  if (strcmp(name, "fill") == 0) return cudaMemset(freed, 1, 4096);
  return cudaErrorNotSupported;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const size_t bytes = size_t{256} << 20;
  static char host[4096];
  char *freed, *other;
  CUDA_CHECK(cudaMalloc((void**)&freed, bytes));
  CUDA_CHECK(cudaMalloc((void**)&other, 64 << 10));
  CUDA_CHECK(cudaMemset(freed, 0, 4096));
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaFree(freed));
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("%s: %d", argv[1], Call(argv[1], freed + bytes / 2, other, host));
  printf(", synchronise %d\n", cudaDeviceSynchronize());
  return 0;
}
