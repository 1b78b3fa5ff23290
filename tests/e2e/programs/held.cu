// held WAY: holds a stream until its standard input ends.
//   wait: for a word of its own memory, with some work behind it
//   full: the same, with as much work behind it as a stream takes
//   host: in a host function
#include <string.h>
#include <unistd.h>

#include "check.h"

__global__ void Add(unsigned* sum) { *sum += 1; }

static void AwaitEnd(void*) {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const bool full = strcmp(argv[1], "full") == 0;
  const int kLaunches = full ? 1022 : 10;  // a client waits for the device at about a thousand
  unsigned* words;
  cudaStream_t held, other;
  CUDA_CHECK(cudaMalloc((void**)&words, size_t{16} << 20));
  CUDA_CHECK(cudaMemset(words, 0, 64));
  CUDA_CHECK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  const bool waits = full || strcmp(argv[1], "wait") == 0;
  if (waits) {
    CHECK(cuStreamWaitValue32(held, (CUdeviceptr)words, 1, CU_STREAM_WAIT_VALUE_EQ));
  } else {
    CUDA_CHECK(cudaLaunchHostFunc(held, AwaitEnd, nullptr));
  }
  for (int i = 0; i < kLaunches; ++i) Add<<<1, 1, 0, held>>>(words + 1);
  CUDA_CHECK(cudaGetLastError());
  printf("held\n");
  fflush(stdout);
  if (waits) {
    AwaitEnd(nullptr);
    CHECK(cuStreamWriteValue32(other, (CUdeviceptr)words, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  }
  unsigned sum = 0;
  CUDA_CHECK(cudaMemcpyAsync(&sum, words + 1, sizeof sum, cudaMemcpyDeviceToHost, held));
  CUDA_CHECK(cudaStreamSynchronize(held));
  printf("sum %u\n", sum);
  return 0;
}
