// Rounds of kernels with fills and copies of device memory between them, on a stream of the
// program's own and on the default stream. In some rounds a fill has another value, a copy another
// length, or memory comes and goes. Prints what the memory held.
//
// fills ROUNDS: that many equal rounds on one stream; then the program waits for the end of its
// input.
#include "check.h"

constexpr int kCount = 1 << 10;
constexpr size_t kBytes = kCount * sizeof(unsigned);

__global__ void Mix(unsigned* to, const unsigned* from, unsigned salt) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = to[i] * 1664525u + from[i] + 1013904223u + salt;
}

static void Launch(unsigned* to, const unsigned* from, unsigned salt, cudaStream_t stream) {
  Mix<<<kCount / 128, 128, 0, stream>>>(to, from, salt);
}

static unsigned Round(unsigned round, unsigned* const (&memory)[3], cudaStream_t stream,
                      bool varies) {
  static unsigned host[kCount];
  unsigned *a = memory[0], *b = memory[1], *c = memory[2], *scratch = nullptr;
  const size_t bytes = varies && round % 11 == 5 ? kBytes / 2 : kBytes;
  CUDA_CHECK(cudaMemsetAsync(a, varies && round % 7 == 3 ? 1 : 0, kBytes, stream));
  Launch(b, a, 1, stream);
  Launch(b, a, 2, stream);
  CUDA_CHECK(cudaMemcpyAsync(c, b, bytes, cudaMemcpyDeviceToDevice, stream));
  Launch(c, b, 3, stream);
  Launch(a, c, varies && round % 5 == 0 ? round : 4, stream);
  if (varies && round % 3 == 0) CUDA_CHECK(cudaMalloc(&scratch, kBytes));
  CUDA_CHECK(cudaMemcpyAsync(scratch != nullptr ? scratch : a, c, kBytes, cudaMemcpyDeviceToDevice,
                             stream));
  Launch(b, scratch != nullptr ? scratch : a, 5, stream);
  Launch(b, c, 6, stream);
  CUDA_CHECK(cudaMemcpyAsync(host, b, kBytes, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaFree(scratch));
  unsigned sum = 0;
  for (unsigned value : host) sum = sum * 31 + value;
  return sum;
}

int main(int argc, char** argv) {
  unsigned* memory[3];
  for (unsigned*& one : memory) {
    CUDA_CHECK(cudaMalloc(&one, kBytes));
    CUDA_CHECK(cudaMemset(one, 0, kBytes));
  }
  cudaStream_t own;
  CUDA_CHECK(cudaStreamCreate(&own));
  if (argc > 1) {
    const unsigned rounds = static_cast<unsigned>(strtoul(argv[1], nullptr, 10));
    for (unsigned round = 0; round < rounds; ++round) Round(round, memory, own, false);
    printf("rounds are over\n");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
  }
  for (cudaStream_t stream : {own, cudaStream_t{}}) {
    for (unsigned round = 0; round < 60; ++round) {
      const unsigned sum = Round(round, memory, stream, true);
      if (round % 6 == 0) printf("%u: %08x\n", round, sum);
    }
  }
  return 0;
}
