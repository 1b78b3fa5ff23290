// Short results that are copied out after waits, again and again, and all that may change them in
// between: on the same stream or another, by fills, copies, frees. Every choice comes from a seed.
#include <random>

#include "check.h"

constexpr int kThreads = 64, kBuffers = 3, kRounds = 600;

__global__ void Step(unsigned* values, unsigned factor, int rounds) {
  unsigned value = values[threadIdx.x];
  for (int i = 0; i < rounds; ++i) value = value * factor + threadIdx.x;
  values[threadIdx.x] = value;
}

static std::mt19937 random_(7);
static bool OneIn(unsigned n) { return random_() % n == 0; }

static unsigned* Fresh() {
  unsigned* buffer;
  CUDA_CHECK(cudaMalloc((void**)&buffer, kThreads * sizeof(unsigned)));
  CUDA_CHECK(cudaMemset(buffer, 1, kThreads * sizeof(unsigned)));
  return buffer;
}

// Streams that do not wait for the legacy one: whoever uses a buffer there waits for it first.
static void ChangeSomething(unsigned** buffers, cudaStream_t stream) {
  unsigned*& buffer = buffers[random_() % kBuffers];
  switch (random_() % 5) {
    case 0:
      CUDA_CHECK(cudaMemset(buffer, (int)(random_() % 256), 8));
      break;
    case 1: {
      const unsigned values[2] = {(unsigned)random_(), 5};
      CUDA_CHECK(cudaMemcpy(buffer, values, sizeof(values), cudaMemcpyHostToDevice));
      break;
    }
    case 2:
      CUDA_CHECK(cudaDeviceSynchronize());
      Step<<<1, kThreads, 0, stream>>>(buffer, 13, 2000);
      if (OneIn(2)) CUDA_CHECK(cudaStreamSynchronize(0));
      CUDA_CHECK(cudaStreamSynchronize(stream));
      break;
    case 3:
      CUDA_CHECK(cudaFree(buffer));
      buffer = Fresh();
      break;
    case 4:
      CUDA_CHECK(
          cudaMemcpy(buffer, buffers[0], kThreads * sizeof(unsigned), cudaMemcpyDeviceToDevice));
      break;
  }
}

int main() {
  unsigned* buffers[kBuffers];
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (unsigned*& buffer : buffers) buffer = Fresh();
  int which = 0, words = 1;
  bool disturbed = false;
  for (int round = 0; round < kRounds; ++round) {
    if (OneIn(40)) disturbed = !disturbed;
    if (OneIn(30)) which = (int)(random_() % kBuffers);
    if (OneIn(30)) words = OneIn(2) ? 1 : kThreads;
    for (unsigned* const buffer : buffers) Step<<<1, kThreads>>>(buffer, 1664525u, 50);
    if (disturbed && OneIn(4)) ChangeSomething(buffers, stream);
    if (OneIn(2)) {
      CUDA_CHECK(cudaDeviceSynchronize());
    } else {
      CUDA_CHECK(cudaStreamSynchronize(0));
    }
    if (disturbed && OneIn(4)) ChangeSomething(buffers, stream);
    unsigned host[kThreads] = {};
    CUDA_CHECK(cudaMemcpy(host, buffers[which], words * sizeof(unsigned), cudaMemcpyDeviceToHost));
    printf("%d: %08x %08x\n", round, host[0], host[words - 1]);
  }
  for (unsigned* const buffer : buffers) CUDA_CHECK(cudaFree(buffer));
  CUDA_CHECK(cudaStreamDestroy(stream));
  return 0;
}
