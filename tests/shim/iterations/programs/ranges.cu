// A loop without a pattern, whose iterations NVTX ranges name: "setup", then COUNT times "step"
// with "forward" inside. Holds its session open until standard input ends.
//     ranges COUNT
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

__global__ void Add(float* values, float x) { values[threadIdx.x] += x; }

int main(int argc, char** argv) {
  const int count = argc > 1 ? static_cast<int>(std::strtol(argv[1], nullptr, 10)) : 10;
  float* values = nullptr;
  if (cudaMalloc(&values, 128 * sizeof(float)) != cudaSuccess) return 1;
  nvtxRangePushA("setup");
  cudaMemset(values, 0, 128 * sizeof(float));
  nvtxRangePop();
  for (int step = 0; step < count; ++step) {
    nvtxRangePushA("step");
    nvtxRangePushA("forward");
    for (int i = 0; i < 1 + step * step % 7; ++i) Add<<<1, 128>>>(values, 1.0f);
    nvtxRangePop();
    nvtxRangePop();
  }
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  std::puts("done");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
