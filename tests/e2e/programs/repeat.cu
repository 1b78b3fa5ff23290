// Works until it is told to stop: rounds of copies, launches, allocations and events, each checked.
// With a number it does that many rounds and prints the sum; with the word "tell" it prints the
// number of each round when it is over. The fault tests run it beside programs that they kill.
#include <string.h>

#include "check.h"

__global__ void Mix(unsigned* values, unsigned round) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * 1664525u + 1013904223u + round;
}

int main(int argc, char** argv) {
  constexpr int kCount = 1 << 12;
  const long rounds = argc > 1 ? atol(argv[1]) : 100;
  const bool tells = argc > 2 && strcmp(argv[2], "tell") == 0;
  static unsigned host[kCount];
  unsigned *device, sum = 0;
  cudaStream_t stream;
  cudaEvent_t event;
  CUDA_CHECK(cudaMalloc(&device, sizeof(host)));
  CUDA_CHECK(cudaMemset(device, 0, sizeof(host)));
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaEventCreate(&event));
  for (long round = 0; round < rounds; ++round) {
    unsigned* scratch;
    CUDA_CHECK(cudaMalloc(&scratch, sizeof(host)));
    Mix<<<kCount / 128, 128, 0, stream>>>(device, static_cast<unsigned>(round));
    CUDA_CHECK(cudaEventRecord(event, stream));
    CUDA_CHECK(cudaMemcpyAsync(scratch, device, sizeof(host), cudaMemcpyDeviceToDevice, stream));
    CUDA_CHECK(cudaMemcpyAsync(host, scratch, sizeof(host), cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaFree(scratch));
    sum = sum * 31 + host[round % kCount];
    if (round == 0) printf("started\n");
    if (tells) printf("round %ld\n", round + 1);
    if (tells || round == 0) fflush(stdout);
  }
  printf("%ld rounds: %08x\n", rounds, sum);
  CUDA_CHECK(cudaEventDestroy(event));
  CUDA_CHECK(cudaStreamDestroy(stream));
  CUDA_CHECK(cudaFree(device));
  return 0;
}
