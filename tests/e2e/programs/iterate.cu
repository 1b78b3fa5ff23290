// A training loop in miniature: weights that live as long as the program, activations that live for
// one iteration, kernels that take a given time, a result copied back at the end of each iteration.
//
//     iterate [--iterations N] [--kernels N] [--kernel-us N] [--persistent MIB] [--ephemeral MIB]
//             [--times FILE] [--hold 1]
//
// The output depends on the numbers alone. FILE gets a line per iteration, "begin end" of its
// kernels in nanoseconds of the device's clock. With --hold it waits after its first iteration
// until standard input ends, so that several can go on together.
#include <string.h>

#include "check.h"

namespace {

constexpr size_t kMiB = 1 << 20;

__device__ unsigned long long Now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Mixes the weights into the activations and back, at a stride that touches every page.
__global__ void Step(unsigned* weights, size_t weights_count, unsigned* activations,
                     size_t activations_count, unsigned round) {
  constexpr size_t kStride = 1024;
  unsigned sum = round;
  for (size_t i = 0; i < activations_count; i += kStride) {
    activations[i] = sum;
    sum = sum * 1664525u + weights[i % weights_count] + 1013904223u;
  }
  for (size_t i = 0; i < activations_count; i += kStride) sum ^= activations[i];
  for (size_t i = 0; i < weights_count; i += kStride) weights[i] = weights[i] * 31 + sum;
}

__global__ void Spin(unsigned long long nanoseconds, unsigned long long* begin,
                     unsigned long long* end) {
  const unsigned long long start = Now();
  if (*begin == 0) *begin = start;
  while (Now() - start < nanoseconds) {
  }
  *end = Now();
}

long Number(int argc, char** argv, const char* name, long otherwise) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], name) == 0) return atol(argv[i + 1]);
  }
  return otherwise;
}

FILE* Times(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--times") == 0) return fopen(argv[i + 1], "w");
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const long iterations = Number(argc, argv, "--iterations", 50);
  const long kernels = Number(argc, argv, "--kernels", 4);
  const unsigned long long kernel_ns = 1000 * Number(argc, argv, "--kernel-us", 100);
  const size_t persistent = kMiB * Number(argc, argv, "--persistent", 4);
  const size_t ephemeral = kMiB * Number(argc, argv, "--ephemeral", 8);
  const bool hold = Number(argc, argv, "--hold", 0) != 0;
  FILE* const times = Times(argc, argv);
  unsigned* weights;
  unsigned long long *clock, span[2];
  CUDA_CHECK(cudaMalloc(&weights, persistent));
  CUDA_CHECK(cudaMalloc(&clock, sizeof span));
  CUDA_CHECK(cudaMemset(weights, 1, persistent));
  unsigned first = 0, sum = 0;
  for (long iteration = 0; iteration < iterations; ++iteration) {
    unsigned* activations;
    CUDA_CHECK(cudaMemset(clock, 0, sizeof span));
    CUDA_CHECK(cudaMalloc(&activations, ephemeral));
    for (long kernel = 0; kernel < kernels; ++kernel) {
      Step<<<1, 1>>>(weights, persistent / sizeof *weights, activations,
                     ephemeral / sizeof *activations, static_cast<unsigned>(kernel));
      Spin<<<1, 1>>>(kernel_ns, clock, clock + 1);
    }
    CUDA_CHECK(cudaMemcpy(&first, weights, sizeof first, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(span, clock, sizeof span, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(activations));
    sum = sum * 31 + first;
    if (times != nullptr) fprintf(times, "%llu %llu\n", span[0], span[1]);
    if (iteration == 0) {
      printf("started\n");
      fflush(stdout);
      while (hold && getchar() != EOF) {
      }
    }
  }
  printf("%ld iterations: %08x\n", iterations, sum);
  CUDA_CHECK(cudaFree(clock));
  CUDA_CHECK(cudaFree(weights));
  if (times != nullptr) fclose(times);
  return 0;
}
