// Times between events, asked again after a rest (a byte on standard input), and from them to one
// that is recorded after it.
#include <unistd.h>

#include "check.h"

__global__ void Spin(unsigned* word) {
  unsigned value = *word;
  for (int i = 0; i < 100'000; ++i) value = value * 16777619u + 1;
  *word = value;
}

static void Tell(const char* what, cudaEvent_t from, cudaEvent_t to) {
  float ms = 0;
  CUDA_CHECK(cudaEventElapsedTime(&ms, from, to));
  printf("%s %.6f\n", what, static_cast<double>(ms));
  fflush(stdout);
}

int main() {
  unsigned* word;
  cudaEvent_t events[3];
  CUDA_CHECK(cudaMalloc(&word, sizeof *word));
  CUDA_CHECK(cudaMemset(word, 1, sizeof *word));
  for (cudaEvent_t& event : events) CUDA_CHECK(cudaEventCreate(&event));
  CUDA_CHECK(cudaEventRecord(events[0]));
  Spin<<<1, 1>>>(word);
  CUDA_CHECK(cudaEventRecord(events[1]));
  CUDA_CHECK(cudaDeviceSynchronize());
  Tell("before", events[0], events[1]);
  char byte;
  if (read(0, &byte, 1) < 0) return 2;
  CUDA_CHECK(cudaEventQuery(events[1]));
  Tell("after", events[0], events[1]);
  CUDA_CHECK(cudaEventRecord(events[2]));
  CUDA_CHECK(cudaEventSynchronize(events[2]));
  Tell("across", events[1], events[2]);
  CUDA_CHECK(cudaEventRecord(events[1]));
  CUDA_CHECK(cudaEventSynchronize(events[1]));
  Tell("anew", events[2], events[1]);
  return 0;
}
