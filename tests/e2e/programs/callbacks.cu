// Host functions run in stream order, in this process, between the device's work.
#include <atomic>

#include "check.h"

__global__ void Double(int* value) { *value *= 2; }

struct Step {
  int* pinned;
  int seen;
};

static void CUDART_CB Look(void* data) {
  Step* step = static_cast<Step*>(data);
  step->seen = *step->pinned;
  *step->pinned += 1;
}

static void CUDART_CB Finish(cudaStream_t, cudaError_t status, void* data) {
  *static_cast<std::atomic<int>*>(data) = 100 + status;
}

int main() {
  int *pinned, *device;
  Step steps[5];
  std::atomic<int> finished{0};
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaMallocHost(&pinned, sizeof(int)));
  CUDA_CHECK(cudaMalloc(&device, sizeof(int)));
  *pinned = 1;
  for (Step& step : steps) {
    step.pinned = pinned;
    CUDA_CHECK(cudaMemcpyAsync(device, pinned, sizeof(int), cudaMemcpyHostToDevice, stream));
    Double<<<1, 1, 0, stream>>>(device);
    CUDA_CHECK(cudaMemcpyAsync(pinned, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaLaunchHostFunc(stream, Look, &step));
  }
  CUDA_CHECK(cudaStreamAddCallback(stream, Finish, &finished, 0));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  for (const Step& step : steps) printf("seen %d\n", step.seen);
  printf("value %d, finished %d\n", *pinned, finished.load());
  CUDA_CHECK(cudaFreeHost(pinned));
  CUDA_CHECK(cudaFree(device));
  CUDA_CHECK(cudaStreamDestroy(stream));
  return 0;
}
