// Uses the device, then replaces itself by a new program that uses it again.
#include <unistd.h>

#include "check.h"

__global__ void Square(int* values) { values[threadIdx.x] *= values[threadIdx.x]; }

int main(int argc, char** argv) {
  int *device, host[32], sum = 0;
  for (int i = 0; i < 32; ++i) host[i] = i + argc;
  CUDA_CHECK(cudaMalloc(&device, sizeof(host)));
  CUDA_CHECK(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
  Square<<<1, 32>>>(device);
  CUDA_CHECK(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
  for (int value : host) sum += value;
  printf("%s exec: %d\n", argc == 1 ? "before" : "after", sum);
  fflush(stdout);
  if (argc > 1) return 0;
  char again[] = "again";
  char* arguments[] = {argv[0], again, nullptr};
  execv("/proc/self/exe", arguments);
  return 1;
}
