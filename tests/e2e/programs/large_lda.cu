// A leading dimension leads far out of the matrix: the call is taken, and then the device has
// faulted, for its own program alone.
#include <cublas_v2.h>

#include "check.h"

int main() {
  float *a, *c;
  cublasHandle_t cublas;
  const float one = 1, zero = 0;
  CUDA_CHECK(cudaMalloc((void**)&a, 1 << 20));
  CUDA_CHECK(cudaMalloc((void**)&c, 64 << 20));
  printf("create %d\n", cublasCreate(&cublas));
  printf("product %d\n", cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 64, &one, a, 1 << 22,
                                     a, 64, &zero, c, 64));
  printf("synchronise %d\n", cudaDeviceSynchronize());
  printf("allocate %d\n", cudaMalloc((void**)&a, 4096));
  return 0;
}
