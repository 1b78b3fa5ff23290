// Launches that must be executed once, although --replay=verify executes what it verifies twice:
// once table|constant|prints|waits.
//
// table, constant: the kernels write pinned memory, whose address they find in device memory or in
// a constant; prints: they print; waits: a stream waits for a value that the program writes behind
// the launches, so that their end can't be awaited before.
#include <string.h>

#include "check.h"

constexpr int kIterations = 100;
constexpr int kLaunches = 5;

__constant__ unsigned* target;

__global__ void ToTable(unsigned** table, unsigned number) {
  if (threadIdx.x == 0) *table[0] += number;
}
__global__ void ToConstant(unsigned number) {
  if (threadIdx.x == 0) *target += number;
}
__global__ void Say(unsigned* sum, unsigned number) {
  if (threadIdx.x == 0) printf("%u of %u\n", number, *sum += number);
}
__global__ void Add(unsigned* sum, unsigned number) {
  if (threadIdx.x == 0) *sum += number;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const bool table = strcmp(argv[1], "table") == 0, constant = strcmp(argv[1], "constant") == 0;
  const bool prints = strcmp(argv[1], "prints") == 0, waits = strcmp(argv[1], "waits") == 0;
  unsigned *pinned, *sum, *flag, **pointers, found = 0;
  cudaStream_t stream, waiting;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking));
  CUDA_CHECK(cudaMallocHost(&pinned, sizeof *pinned));
  *pinned = 0;
  for (unsigned** word : {&sum, &flag}) {
    CUDA_CHECK(cudaMalloc(word, sizeof **word));
    CUDA_CHECK(cudaMemset(*word, 0, sizeof **word));
  }
  CUDA_CHECK(cudaMalloc(&pointers, sizeof *pointers));
  if (table) CUDA_CHECK(cudaMemcpy(pointers, &pinned, sizeof pinned, cudaMemcpyHostToDevice));
  if (constant) CUDA_CHECK(cudaMemcpyToSymbol(target, &pinned, sizeof pinned));
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int i = 1; i <= kIterations; ++i) {
    if (waits)
      CHECK(cuStreamWaitValue32(waiting, reinterpret_cast<CUdeviceptr>(flag), i,
                                CU_STREAM_WAIT_VALUE_EQ));
    CUDA_CHECK(cudaMemsetAsync(sum, 0, sizeof *sum, stream));
    for (int k = 0; k < kLaunches; ++k) {
      if (table) ToTable<<<1, 32, 0, stream>>>(pointers, k);
      if (constant) ToConstant<<<1, 32, 0, stream>>>(k);
      if (prints) Say<<<1, 32, 0, stream>>>(sum, k);
      if (waits) Add<<<1, 32, 0, stream>>>(sum, k);
    }
    if (waits)
      CHECK(cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(flag), i,
                                 CU_STREAM_WRITE_VALUE_DEFAULT));
    CUDA_CHECK(cudaMemcpyAsync(&found, sum, sizeof found, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaStreamSynchronize(waiting));
  }
  printf("sum %u, pinned %u\n", found, *pinned);
  return 0;
}
