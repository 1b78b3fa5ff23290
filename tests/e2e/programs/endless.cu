// One kernel that does not end; "started" is printed once it runs.
#include <sched.h>

#include "check.h"

__global__ void Endless(volatile unsigned* begun) {
  *begun = 1;
  __threadfence_system();
  while (*begun != 0) {
  }
}

int main() {
  unsigned* begun;
  CUDA_CHECK(cudaMallocHost(&begun, sizeof *begun));
  *begun = 0;
  Endless<<<1, 1>>>(begun);
  CUDA_CHECK(cudaGetLastError());
  while (*static_cast<volatile unsigned*>(begun) == 0) sched_yield();
  printf("started\n");
  fflush(stdout);
  CUDA_CHECK(cudaDeviceSynchronize());
  return 0;
}
