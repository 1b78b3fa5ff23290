// A network of eight branches of seven layers. As under some frameworks, each result is allocated
// for itself, and freed behind its last use: `branches ITERATIONS [malloc|async]`. All launches are
// on one stream. Prints a hash of each tenth answer.
#include <stdint.h>
#include <stdlib.h>

#include <string>

#include "check.h"

constexpr int kBranches = 8, kLayers = 7, kCount = 1024;

__global__ void Layer(const unsigned* from, unsigned* to, unsigned number) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i] * 1664525u + number;
}
__global__ void Add(const unsigned* a, const unsigned* b, unsigned* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = (a[i] ^ b[i]) + i;
}

static bool in_order;  // of the stream

static unsigned* Allocate() {
  unsigned* made = nullptr;
  if (in_order) {
    CUDA_CHECK(cudaMallocAsync(&made, 4 * kCount, 0));
  } else {
    CUDA_CHECK(cudaMalloc(&made, 4 * kCount));
  }
  return made;
}
static void Free(unsigned* memory) {
  if (in_order) {
    CUDA_CHECK(cudaFreeAsync(memory, 0));
  } else {
    CUDA_CHECK(cudaFree(memory));
  }
}

static unsigned* Branch(const unsigned* input, unsigned number) {
  unsigned* result = nullptr;
  for (unsigned layer = 0; layer < kLayers; ++layer) {
    unsigned* const next = Allocate();
    Layer<<<kCount / 128, 128>>>(layer == 0 ? input : result, next, number * kLayers + layer);
    if (layer != 0) Free(result);
    result = next;
  }
  return result;
}

static unsigned Iterate(const unsigned* input) {
  unsigned* total = Branch(input, 0);
  for (unsigned branch = 1; branch < kBranches; ++branch) {
    unsigned* const result = Branch(input, branch);
    unsigned* const sum = Allocate();
    Add<<<kCount / 128, 128>>>(total, result, sum);
    Free(total);
    Free(result);
    total = sum;
  }
  static unsigned host[kCount];
  CUDA_CHECK(cudaMemcpyAsync(host, total, sizeof host, cudaMemcpyDeviceToHost, 0));
  CUDA_CHECK(cudaStreamSynchronize(0));
  Free(total);
  unsigned hash = 0;
  for (unsigned value : host) hash = hash * 31 + value;
  return hash;
}

int main(int argc, char** argv) {
  const long iterations = strtol(argv[1], nullptr, 10);
  in_order = argc > 2 && std::string(argv[2]) == "async";
  unsigned* input = nullptr;
  CUDA_CHECK(cudaMalloc(&input, 4 * kCount));
  for (long i = 0; i < iterations; ++i) {
    CUDA_CHECK(cudaMemsetAsync(input, static_cast<int>(i % 7 + 1), 4 * kCount, 0));
    const unsigned hash = Iterate(input);
    if (i % 10 == 9) printf("%ld %08x\n", i + 1, hash);
  }
  CUDA_CHECK(cudaFree(input));
}
