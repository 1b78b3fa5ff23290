// The other half of separable.cu.
#include "separable_parts.h"

#include "check.h"

static __device__ int own = 5;
__device__ int counter = 10;

__device__ float Square(float x) { return x * x; }
__device__ float Half(float x) { return x / 2 + own; }
__device__ float Twice(float x) { return x * 2; }
__device__ Function functions[2] = {Half, Twice};

__global__ void Parts(float* out) {
  const int i = threadIdx.x;
  out[i] = counter + scale[i & 3] + own;
  __syncthreads();
  if (i == 0) {
    own += 1;
    Advance<5>();
  }
}

void LaunchParts(float* out) {
  Parts<<<1, kThreads>>>(out);
  CUDA_CHECK(cudaGetLastError());
}

int ReadParts() {
  int value = 0;
  CUDA_CHECK(cudaMemcpyFromSymbol(&value, own, sizeof(value)));
  return value;
}
