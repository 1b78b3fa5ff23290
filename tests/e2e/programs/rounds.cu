// Rounds of work on what lives as long as the program does (memory, streams, an event, a kernel),
// with nothing in flight between them: rounds COUNT MEMORY [step].
//
// MEMORY is device or pinned; lane: with memory besides that lives for a round; within: the same,
// and it rests in the middle of its rounds, while that memory lives. With `step` it waits for a
// byte on standard input where it rests, else it computes for a moment, as a program does that
// prepares its next batch. After a `g` it takes kGrowBytes more, for good, before it goes on.
#include <string.h>
#include <unistd.h>

#include "check.h"

constexpr int kCount = 1 << 14;
constexpr size_t kGrowBytes = 64 << 20;

__global__ void Mix(const unsigned* from, unsigned* to, unsigned round) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) to[i] = (from[i] ^ round) * 16777619u + from[(i + 1) % kCount];
}

static void Rest(bool step) {
  char byte = 0;
  void* more = nullptr;
  volatile unsigned batch = 0;
  if (!step) {
    for (int i = 0; i < 2'000'000; ++i) batch = batch * 16777619u + i;
  } else if (read(0, &byte, 1) < 0) {
    exit(2);
  }
  if (byte == 'g') CUDA_CHECK(cudaMalloc(&more, kGrowBytes));
}

static unsigned Hash(const unsigned* words) {
  unsigned hash = 2166136261u;
  for (int i = 0; i < kCount; ++i) hash = (hash ^ words[i]) * 16777619u;
  return hash;
}

int main(int argc, char** argv) {
  const long rounds = strtol(argv[1], nullptr, 10);
  const bool pinned = strcmp(argv[2], "pinned") == 0, step = argc > 3;
  const bool within = strcmp(argv[2], "within") == 0, lane = within || strcmp(argv[2], "lane") == 0;
  unsigned *a, *b, *host = static_cast<unsigned*>(malloc(kCount * sizeof(unsigned)));
  cudaStream_t streams[2];
  cudaEvent_t event;
  for (cudaStream_t& stream : streams) CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaEventCreate(&event));
  for (unsigned** words : {&a, &b}) {
    CUDA_CHECK(pinned ? cudaMallocHost(words, kCount * sizeof(unsigned))
                      : cudaMalloc(words, kCount * sizeof(unsigned)));
  }
  for (int i = 0; i < kCount; ++i) host[i] = i * 2654435761u;
  CUDA_CHECK(cudaMemcpy(a, host, kCount * sizeof(unsigned), cudaMemcpyDefault));
  printf("started\n");
  fflush(stdout);
  for (long round = 0; round < rounds; ++round) {
    unsigned* ephemeral = b;
    if (!within) Rest(step);
    if (lane) CUDA_CHECK(cudaMalloc(&ephemeral, kCount * sizeof(unsigned)));
    Mix<<<kCount / 256, 256, 0, streams[0]>>>(a, ephemeral, round);
    if (within) Rest(step);
    CUDA_CHECK(cudaEventRecord(event, streams[0]));
    CUDA_CHECK(cudaStreamWaitEvent(streams[1], event, 0));
    Mix<<<kCount / 256, 256, 0, streams[1]>>>(ephemeral, a, round + 1);
    CUDA_CHECK(cudaStreamSynchronize(streams[1]));
    CUDA_CHECK(cudaMemcpy(host, a, kCount * sizeof(unsigned), cudaMemcpyDefault));
    if (lane) CUDA_CHECK(cudaFree(ephemeral));
    printf("round %ld: %08x\n", round, Hash(host));
    fflush(stdout);
  }
  CUDA_CHECK(cudaEventDestroy(event));
  for (const cudaStream_t stream : streams) CUDA_CHECK(cudaStreamDestroy(stream));
  printf("done\n");
  return 0;
}
