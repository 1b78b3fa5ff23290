// Forks before the first CUDA call: parent and child are two programs, and both work.
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void Fill(int* values, int base) { values[threadIdx.x] = base + threadIdx.x; }

static int Compute(int base) {
  int *device, host[64], sum = 0;
  CUDA_CHECK(cudaMalloc(&device, sizeof(host)));
  Fill<<<1, 64>>>(device, base);
  CUDA_CHECK(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(device));
  for (int value : host) sum += value;
  return sum;
}

int main() {
  const pid_t child = fork();
  if (child == 0) {
    printf("child %d\n", Compute(1000));
    return 0;
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 1;
  printf("parent %d\n", Compute(10));
  return 0;
}
