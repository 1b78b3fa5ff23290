// Threads make streams, give them work and destroy them before it is done, while others wait for
// the whole device: who waits meets streams that go at that moment.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

constexpr int kMakers = 4;
constexpr int kWaiters = 2;
constexpr int kRounds = 200;

__global__ void Add(unsigned* value) { atomicAdd(value, 1u); }

int main() {
  unsigned* value;
  CUDA_CHECK(cudaMalloc(&value, sizeof *value));
  CUDA_CHECK(cudaMemset(value, 0, sizeof *value));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::atomic<int> making{kMakers};
  std::vector<std::thread> threads;
  for (int i = 0; i < kMakers; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        cudaStream_t stream;
        CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        Add<<<1, 32, 0, stream>>>(value);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaStreamDestroy(stream));
      }
      --making;
    });
  }
  for (int i = 0; i < kWaiters; ++i) {
    threads.emplace_back([&] {
      while (making.load() != 0) CUDA_CHECK(cudaDeviceSynchronize());
    });
  }
  for (std::thread& thread : threads) thread.join();
  CUDA_CHECK(cudaDeviceSynchronize());
  unsigned added = 0;
  CUDA_CHECK(cudaMemcpy(&added, value, sizeof added, cudaMemcpyDeviceToHost));
  printf("%u added, %d wanted\n", added, kMakers * kRounds * 32);
  return added == kMakers * kRounds * 32 ? 0 : 1;
}
