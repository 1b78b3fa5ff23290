// An event after all streams of a context, and all streams of a context after an event.
#include "check.h"

namespace {

constexpr int kStreams = 3;

__global__ void SetLate(int* value, int to, int rounds) {
  int x = to;
  for (int i = 0; i < rounds; ++i) x = x * 1664525 + 1013904223;
  *value = x == 7 ? 0 : to;
}
__global__ void Copy(const int* from, int* to) { *to = *from; }

}  // namespace

int main() {
  int *values, *copies;
  CUDA_CHECK(cudaMallocManaged(&values, kStreams * sizeof(int)));
  CUDA_CHECK(cudaMallocManaged(&copies, kStreams * sizeof(int)));
  CUcontext context;
  CHECK(cuCtxGetCurrent(&context));
  CUstream streams[kStreams];
  for (CUstream& stream : streams) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUevent all, first;
  CHECK(cuEventCreate(&all, CU_EVENT_DISABLE_TIMING));
  CHECK(cuEventCreate(&first, CU_EVENT_DISABLE_TIMING));
  for (int round = 1; round <= 5; ++round) {
    for (int i = 0; i < kStreams; ++i)
      SetLate<<<1, 1, 0, streams[i]>>>(values + i, round * 10 + i, 20000 * (i + 1));
    CHECK(cuCtxRecordEvent(context, all));
    CHECK(cuEventSynchronize(all));
    printf("round %d:", round);
    for (int i = 0; i < kStreams; ++i) printf(" %d", values[i]);
    SetLate<<<1, 1, 0, streams[0]>>>(values, -round, 100000);
    CHECK(cuEventRecord(first, streams[0]));
    CHECK(cuCtxWaitEvent(context, first));
    for (int i = 1; i < kStreams; ++i) Copy<<<1, 1, 0, streams[i]>>>(values, copies + i);
    CHECK(cuCtxSynchronize());
    printf(", copies %d %d\n", copies[1], copies[2]);
  }
  printf("refused: %d %d\n", cuCtxRecordEvent(context, nullptr), cuCtxWaitEvent(context, nullptr));
  return 0;
}
