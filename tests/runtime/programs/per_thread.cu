// Built with --default-stream per-thread: stream 0 is each thread's own.
#include <thread>
#include <vector>

#include "check.h"

__device__ int shared_counter;

__global__ void Fill(int* values, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = value;
}

namespace {

void Work(int number) {
  constexpr int kCount = 5000;
  std::vector<int> values(kCount);
  int* device;
  CHECK(cudaMalloc(&device, kCount * sizeof(int)));
  CHECK(cudaMemset(device, 0, kCount * sizeof(int)));
  Fill<<<(kCount + 255) / 256, 256>>>(device, kCount, number);
  CHECK(cudaMemcpyAsync(values.data(), device, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaStreamSynchronize(nullptr));
  for (const int value : values) EXPECT(value == number);
  Fill<<<1, 1>>>(device, 1, number + 1);
  CHECK(cudaMemcpy(values.data(), device, sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(values[0] == number + 1);
  unsigned flags = 0;
  CHECK(cudaStreamGetFlags(nullptr, &flags));
  CHECK(cudaFree(device));
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(Work, i * 100);
  for (std::thread& thread : threads) thread.join();
  const int three = 3;
  int back = 0;
  CHECK(cudaMemcpyToSymbol(shared_counter, &three, sizeof three));
  CHECK(cudaMemcpyFromSymbol(&back, shared_counter, sizeof back));
  EXPECT(back == 3);
  std::puts("ok");
}
