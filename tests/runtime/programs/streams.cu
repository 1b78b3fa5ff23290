// Streams and events: order, waiting, callbacks, the default streams.
#include <atomic>

#include "check.h"

__global__ void Add(int* value, int amount) { *value += amount; }
__global__ void Multiply(int* value, int factor) { *value *= factor; }

namespace {

int Read(const int* device) {
  int value = 0;
  CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

void EventsOrderStreams(int* device) {
  cudaStream_t first, second;
  cudaEvent_t done;
  CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, 0));
  CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  CHECK(cudaMemsetAsync(device, 0, sizeof(int), first));
  for (int i = 0; i < 50; ++i) {
    Add<<<1, 1, 0, first>>>(device, 1);
    CHECK(cudaEventRecord(done, first));
    CHECK(cudaStreamWaitEvent(second, done, 0));
    Multiply<<<1, 1, 0, second>>>(device, i % 5 == 0 ? 2 : 1);
    CHECK(cudaEventRecord(done, second));
    CHECK(cudaStreamWaitEvent(first, done, 0));
  }
  CHECK(cudaStreamSynchronize(first));
  int expected = 0;
  for (int i = 0; i < 50; ++i) expected = (expected + 1) * (i % 5 == 0 ? 2 : 1);
  EXPECT(Read(device) == expected);
  CHECK(cudaStreamQuery(first));
  CHECK(cudaEventQuery(done));
  CHECK(cudaEventDestroy(done));
  CHECK(cudaStreamDestroy(first));
  CHECK(cudaStreamDestroy(second));
}

void TimesGrow(int* device) {
  cudaEvent_t start, end;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(start));
  for (int i = 0; i < 10; ++i) Add<<<1, 1>>>(device, 1);
  CHECK(cudaEventRecord(end));
  CHECK(cudaEventSynchronize(end));
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds >= 0);
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(end));
}

void TheLegacyStreamWaitsForBlockingStreams(int* device) {
  cudaStream_t blocking;
  CHECK(cudaStreamCreate(&blocking));
  CHECK(cudaMemset(device, 0, sizeof(int)));
  for (int i = 0; i < 20; ++i) Add<<<1, 1, 0, blocking>>>(device, 1);
  Multiply<<<1, 1>>>(device, 10);
  Add<<<1, 1, 0, blocking>>>(device, 3);
  EXPECT(Read(device) == 203);
  CHECK(cudaStreamDestroy(blocking));
}

std::atomic<int> seen;

void Callbacks() {
  static int amount = 4;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  seen = 0;
  CHECK(cudaLaunchHostFunc(
      stream, [](void* add) { seen += *static_cast<int*>(add); }, &amount));
  CHECK(cudaStreamAddCallback(
      stream,
      [](cudaStream_t, cudaError_t status, void* add) {
        if (status == cudaSuccess) seen = seen * 10 + *static_cast<int*>(add);
      },
      &amount, 0));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(seen == 44);
  CHECK(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
  int* device;
  CHECK(cudaMalloc(&device, sizeof(int)));
  EventsOrderStreams(device);
  TimesGrow(device);
  TheLegacyStreamWaitsForBlockingStreams(device);
  Callbacks();
  int least, greatest;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT(greatest <= least);
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaStreamDestroy(nullptr));
  EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaFree(device));
  std::puts("ok");
}
