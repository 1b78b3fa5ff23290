// Sixteen threads, each with its own stream, buffers and events, launch at once.
#include <thread>
#include <vector>

#include "check.h"

constexpr int kThreads = 16;
constexpr int kCount = 4096;
constexpr int kRounds = 20;

__global__ void Step(unsigned* values, unsigned factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * factor + i;
}

static void Work(unsigned id, unsigned* sum) {
  cudaStream_t stream;
  cudaEvent_t done;
  unsigned *device, *host;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  CUDA_CHECK(cudaMalloc(&device, kCount * sizeof(unsigned)));
  CUDA_CHECK(cudaMallocHost(&host, kCount * sizeof(unsigned)));
  for (int i = 0; i < kCount; ++i) host[i] = id * 1000 + i;
  CUDA_CHECK(
      cudaMemcpyAsync(device, host, kCount * sizeof(unsigned), cudaMemcpyHostToDevice, stream));
  for (int round = 0; round < kRounds; ++round)
    Step<<<kCount / 128, 128, 0, stream>>>(device, id + round);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(
      cudaMemcpyAsync(host, device, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaEventRecord(done, stream));
  CUDA_CHECK(cudaEventSynchronize(done));
  *sum = 0;
  for (int i = 0; i < kCount; ++i) *sum = *sum * 31 + host[i];
  CUDA_CHECK(cudaFreeHost(host));
  CUDA_CHECK(cudaFree(device));
  CUDA_CHECK(cudaEventDestroy(done));
  CUDA_CHECK(cudaStreamDestroy(stream));
}

int main() {
  unsigned sums[kThreads];
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(Work, i + 1, &sums[i]);
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) printf("thread %d: %08x\n", i, sums[i]);
  return 0;
}
