// Sixteen threads use the runtime at once, from the very first call.
#include <thread>
#include <vector>

#include "check.h"

template <int kNumber>
__global__ void Set(int* out) {
  out[threadIdx.x] = kNumber;
}

namespace {

template <int kNumber>
void Work() {
  for (int round = 0; round < 20; ++round) {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int* device;
    int out[32] = {};
    CHECK(cudaMalloc(&device, sizeof out));
    Set<kNumber><<<1, 32, 0, stream>>>(device);
    CHECK(cudaMemcpyAsync(out, device, sizeof out, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (const int value : out) EXPECT(value == kNumber);
    CHECK(cudaFree(device));
    CHECK(cudaStreamDestroy(stream));
  }
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(Work<1>);
    threads.emplace_back(Work<2>);
    threads.emplace_back(Work<3>);
    threads.emplace_back(Work<4>);
  }
  for (std::thread& thread : threads) thread.join();
  std::puts("ok");
}
