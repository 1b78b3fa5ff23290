// A loop of four kernels that take a given time, queued well ahead of the device: what switches are
// measured with, because nothing but the switch lies between two iterations.
//
//     spin ITERATIONS MICROSECONDS FILE [AHEAD]
//
// It looks at the device after every AHEAD iterations (16). With 1 every iteration ends with a
// look, and another program can have the next one.
// FILE gets a line per iteration, "begin end" in nanoseconds of the device's clock.
#include <vector>

#include "check.h"

__device__ unsigned long long Now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

template <int kPart>
__global__ void Spin(unsigned long long nanoseconds, unsigned long long* span) {
  const unsigned long long start = Now();
  if (span[0] == 0) span[0] = start;
  while (Now() - start < nanoseconds) {
  }
  span[1] = Now();
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const size_t ahead = argc > 4 ? atol(argv[4]) : 16;  // iterations between two looks at the device
  const size_t iterations = atol(argv[1]);
  const unsigned long long nanoseconds = 1000 * atol(argv[2]);
  std::vector<unsigned long long> spans(2 * iterations);
  unsigned long long* device;
  CUDA_CHECK(cudaMalloc(&device, spans.size() * sizeof spans[0]));
  CUDA_CHECK(cudaMemset(device, 0, spans.size() * sizeof spans[0]));
  for (size_t i = 0; i < iterations; ++i) {
    Spin<0><<<1, 1>>>(nanoseconds, device + 2 * i);
    Spin<1><<<1, 1>>>(nanoseconds, device + 2 * i);
    Spin<2><<<1, 1>>>(nanoseconds, device + 2 * i);
    Spin<3><<<1, 1>>>(nanoseconds, device + 2 * i);
    if (i % ahead == 0) CUDA_CHECK(cudaDeviceSynchronize());
  }
  CUDA_CHECK(
      cudaMemcpy(spans.data(), device, spans.size() * sizeof spans[0], cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(device));
  FILE* const file = fopen(argv[3], "w");
  if (file == nullptr) return 1;
  for (size_t i = 0; i < iterations; ++i) {
    fprintf(file, "%llu %llu\n", spans[2 * i], spans[2 * i + 1]);
  }
  return fclose(file);
}
