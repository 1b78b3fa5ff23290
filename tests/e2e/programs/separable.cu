// Separable compilation (nvcc -rdc=true): functions, variables, constants and tables of functions
// of one file that kernels of another use, static variables of one name in both, and the host's
// access to all of them by symbol.
#include "separable_parts.h"

#include "check.h"

static __device__ int own = 3;
__constant__ float scale[4] = {1, 1, 1, 1};

__global__ void Whole(float* out) {
  const int i = threadIdx.x;
  out[i] = Square(i) * scale[i & 3] + functions[i & 1](1.5f) + own;
  atomicAdd(&counter, 1);
  if (i == 0) Advance<5>();
}

__global__ void Point(Function* to) { *to = functions[1]; }
__global__ void Call(const Function* function, float* out) { out[threadIdx.x] = (*function)(4); }

static void Print(const char* what, const float* device) {
  float host[kThreads];
  CUDA_CHECK(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%s:", what);
  for (float value : host) printf(" %g", value);
  printf("\n");
}

int main() {
  float* out;
  Function* function;
  const float tenths[4] = {0.1f, 0.2f, 0.3f, 0.4f};
  int value = 0;
  CUDA_CHECK(cudaMalloc(&out, kThreads * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&function, sizeof(*function)));
  for (int round = 0; round < 2; ++round) {
    Whole<<<1, kThreads>>>(out);
    CUDA_CHECK(cudaGetLastError());
    Print("whole", out);
    LaunchParts(out);
    Print("parts", out);
    CUDA_CHECK(cudaMemcpyFromSymbol(&value, own, sizeof(value)));
    printf("own %d, parts' own %d\n", value, ReadParts());
    CUDA_CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
    printf("counter %d\n", value);
    CUDA_CHECK(cudaMemcpyFromSymbol(&value, shared_steps<5>, sizeof(value)));
    printf("steps %d\n", value);
    CUDA_CHECK(cudaMemcpyToSymbol(scale, tenths, sizeof(tenths)));
  }
  Point<<<1, 1>>>(function);
  Call<<<1, kThreads>>>(function, out);
  Print("pointer", out);
  CUDA_CHECK(cudaFree(function));
  CUDA_CHECK(cudaFree(out));
  return 0;
}
