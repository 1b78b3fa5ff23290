// Memory that is freed while a stream still works on it, and used again at once on another: the old
// work must never show in the new block. And iterations whose memory comes and goes, with a block
// now and then that outlives its own.
#include "check.h"

constexpr int kCount = 1 << 16;
constexpr int kBlocks = kCount / 256;

// Takes a while, and writes only at the end.
__global__ void SlowFill(unsigned* values, unsigned value, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned x = value;
  for (int round = 0; round < rounds; ++round) x = x * 1664525u + 1013904223u;
  values[i] = x | 0x80000000u;
}
__global__ void Fill(unsigned* values, unsigned value) {
  values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
__global__ void Accumulate(unsigned* sums, const unsigned* values, unsigned factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  sums[i] = sums[i] * factor + values[i];
}

static unsigned Sum(const unsigned* device, cudaStream_t stream) {
  static unsigned host[kCount];
  CUDA_CHECK(cudaMemcpyAsync(host, device, sizeof(host), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  unsigned sum = 0;
  for (int i = 0; i < kCount; ++i) sum = sum * 31 + host[i];
  return sum;
}

// After synchronous frees every stream may use the memory.
static void AcrossStreams(cudaStream_t* streams) {
  for (unsigned round = 0; round < 12; ++round) {
    const int from = round % 3, to = (round + 1) % 3;
    unsigned *old, *fresh;
    CUDA_CHECK(cudaMalloc((void**)&old, kCount * sizeof(unsigned)));
    SlowFill<<<kBlocks, 256, 0, streams[from]>>>(old, round, 300);
    CUDA_CHECK(cudaFree(old));
    CUDA_CHECK(cudaMalloc((void**)&fresh, kCount * sizeof(unsigned)));
    Fill<<<kBlocks, 256, 0, streams[to]>>>(fresh, round);
    printf("across streams %u: %08x\n", round, Sum(fresh, streams[to]));
    CUDA_CHECK(cudaFree(fresh));
  }
}

// A stream that comes into use only after the memory was used again.
static void ALateStream() {
  cudaStream_t late;
  unsigned *old, *fresh;
  CUDA_CHECK(cudaMalloc((void**)&old, kCount * sizeof(unsigned)));
  SlowFill<<<kBlocks, 256>>>(old, 1, 300);
  CUDA_CHECK(cudaFree(old));
  CUDA_CHECK(cudaMalloc((void**)&fresh, kCount * sizeof(unsigned)));
  CUDA_CHECK(cudaStreamCreateWithFlags(&late, cudaStreamNonBlocking));
  Fill<<<kBlocks, 256, 0, late>>>(fresh, 5);
  printf("a late stream: %08x\n", Sum(fresh, late));
  CUDA_CHECK(cudaFree(fresh));
  CUDA_CHECK(cudaStreamDestroy(late));
}

static void StreamOrdered(cudaStream_t* streams) {
  for (unsigned round = 0; round < 12; ++round) {
    const int from = round % 3, to = (round + 1) % 3;
    unsigned *old, *fresh;
    CUDA_CHECK(cudaMallocAsync((void**)&old, kCount * sizeof(unsigned), streams[from]));
    SlowFill<<<kBlocks, 256, 0, streams[from]>>>(old, round, 300);
    CUDA_CHECK(cudaFreeAsync(old, streams[from]));
    CUDA_CHECK(cudaMallocAsync((void**)&fresh, kCount * sizeof(unsigned), streams[to]));
    Fill<<<kBlocks, 256, 0, streams[to]>>>(fresh, round);
    printf("stream-ordered %u: %08x\n", round, Sum(fresh, streams[to]));
    CUDA_CHECK(cudaFreeAsync(fresh, streams[to]));
  }
}

// A loop with weights, activations, and every eighth time a block that lives until the next.
static void Iterations(cudaStream_t stream) {
  unsigned *weights, *kept = nullptr;
  CUDA_CHECK(cudaMalloc((void**)&weights, kCount * sizeof(unsigned)));
  CUDA_CHECK(cudaMemsetAsync(weights, 0, kCount * sizeof(unsigned), stream));
  for (unsigned i = 0; i < 48; ++i) {
    unsigned* activations[6];
    for (unsigned layer = 0; layer < 6; ++layer) {
      CUDA_CHECK(cudaMalloc((void**)&activations[layer], (layer + 1) * kCount * sizeof(unsigned)));
      Fill<<<kBlocks, 256, 0, stream>>>(activations[layer], i + layer);
      Accumulate<<<kBlocks, 256, 0, stream>>>(weights, activations[layer], 3 + layer);
    }
    if (kept != nullptr) {
      Accumulate<<<kBlocks, 256, 0, stream>>>(weights, kept, 7);
      CUDA_CHECK(cudaFree(kept));
      kept = nullptr;
    }
    const unsigned sum = Sum(weights, stream);
    if (i % 4 == 3) printf("iteration %u: %08x\n", i, sum);
    for (unsigned layer = 0; layer < 6; ++layer) {
      if (i % 8 == 7 && layer == 3) {
        kept = activations[layer];
      } else {
        CUDA_CHECK(cudaFree(activations[layer]));
      }
    }
  }
  CUDA_CHECK(cudaFree(kept));
  CUDA_CHECK(cudaFree(weights));
}

int main() {
  cudaStream_t streams[3];
  ALateStream();
  for (int i = 0; i < 3; ++i)
    CUDA_CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  AcrossStreams(streams);
  StreamOrdered(streams);
  Iterations(streams[0]);
  for (int i = 0; i < 3; ++i) CUDA_CHECK(cudaStreamDestroy(streams[i]));
  return 0;
}
