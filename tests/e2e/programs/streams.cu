// Streams and events: order within a stream, between streams by events, and the legacy default
// stream's implicit order.
#include "check.h"

constexpr int kCount = 1 << 14;
constexpr int kBlocks = kCount / 128;

__global__ void Multiply(unsigned* values, unsigned factor) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= factor;
}
__global__ void Add(unsigned* values, unsigned term) {
  values[blockIdx.x * blockDim.x + threadIdx.x] += term;
}

static unsigned First(const unsigned* device) {
  unsigned value = 0;
  CUDA_CHECK(cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
  return value;
}

// Two streams in turns, ordered by events alone.
static void ByEvents(unsigned* device) {
  cudaStream_t streams[2];
  cudaEvent_t events[2];
  for (int i = 0; i < 2; ++i) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    CUDA_CHECK(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
  }
  CUDA_CHECK(cudaMemset(device, 0, kCount * sizeof(unsigned)));
  CUDA_CHECK(cudaDeviceSynchronize());
  for (unsigned round = 1; round <= 20; ++round) {
    const int mine = round % 2, other = 1 - mine;
    CUDA_CHECK(cudaStreamWaitEvent(streams[mine], events[other], 0));
    Multiply<<<kBlocks, 128, 0, streams[mine]>>>(device, 3);
    Add<<<kBlocks, 128, 0, streams[mine]>>>(device, round);
    CUDA_CHECK(cudaEventRecord(events[mine], streams[mine]));
  }
  CUDA_CHECK(cudaStreamSynchronize(streams[0]));
  CUDA_CHECK(cudaStreamSynchronize(streams[1]));
  printf("by events %08x\n", First(device));
  for (int i = 0; i < 2; ++i) {
    CUDA_CHECK(cudaEventDestroy(events[i]));
    CUDA_CHECK(cudaStreamDestroy(streams[i]));
  }
}

// A blocking stream and the legacy default stream wait for each other without being told.
static void ByDefaultStream(unsigned* device) {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaMemset(device, 0, kCount * sizeof(unsigned)));
  for (unsigned round = 1; round <= 10; ++round) {
    Multiply<<<kBlocks, 128>>>(device, 5);
    Add<<<kBlocks, 128, 0, stream>>>(device, round);
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("by default stream %08x\n", First(device));
  CUDA_CHECK(cudaStreamDestroy(stream));
}

static void Events(unsigned* device) {
  cudaEvent_t begin, end, fresh;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  CUDA_CHECK(cudaEventCreate(&fresh));
  CUDA_CHECK(cudaEventRecord(begin));
  for (int i = 0; i < 10; ++i) Add<<<kBlocks, 128>>>(device, 1);
  CUDA_CHECK(cudaEventRecord(end));
  CUDA_CHECK(cudaEventSynchronize(end));
  float elapsed_ms = -1;
  CUDA_CHECK(cudaEventElapsedTime(&elapsed_ms, begin, end));
  printf("elapsed %s, end %d, begin %d, never recorded %d\n", elapsed_ms >= 0 ? "ok" : "WRONG",
         cudaEventQuery(end), cudaEventQuery(begin), cudaEventQuery(fresh));
  printf("elapsed of an event never recorded: %d\n",
         cudaEventElapsedTime(&elapsed_ms, begin, fresh));
  const cudaError_t last = cudaGetLastError();
  printf("last error %d, then %d\n", last, cudaGetLastError());
  CUDA_CHECK(cudaStreamSynchronize(nullptr));
  printf("stream %d\n", cudaStreamQuery(nullptr));
  CUDA_CHECK(cudaEventDestroy(begin));
  CUDA_CHECK(cudaEventDestroy(end));
  CUDA_CHECK(cudaEventDestroy(fresh));
}

static void Priorities() {
  int least = 1, greatest = 1, priority = 99;
  unsigned flags = 99;
  cudaStream_t stream;
  CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  CUDA_CHECK(cudaStreamGetPriority(stream, &priority));
  CUDA_CHECK(cudaStreamGetFlags(stream, &flags));
  printf("priority %s, flags %u\n", priority == greatest && least >= greatest ? "ok" : "WRONG",
         flags);
  CUDA_CHECK(cudaStreamDestroy(stream));
}

int main() {
  unsigned* device;
  CUDA_CHECK(cudaMalloc(&device, kCount * sizeof(unsigned)));
  ByEvents(device);
  ByDefaultStream(device);
  Events(device);
  Priorities();
  CUDA_CHECK(cudaFree(device));
  return 0;
}
