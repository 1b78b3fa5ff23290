// How many blocks fit.
#include "check.h"

__global__ void Small(int* out) { out[threadIdx.x] = static_cast<int>(threadIdx.x); }

__global__ void Sharing(int* out) {
  __shared__ int values[6 * 1024];  // 24 KiB
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

int main() {
  cudaDeviceProp prop;
  CHECK(cudaGetDeviceProperties(&prop, 0));
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Small, 128, 0));
  EXPECT(blocks >= 1 && blocks * 128 <= prop.maxThreadsPerMultiProcessor);
  int with_shared = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&with_shared, Sharing, 128, 0));
  EXPECT(with_shared >= 1);
  EXPECT(static_cast<size_t>(with_shared) * 24 * 1024 <= prop.sharedMemPerMultiprocessor);
  int grid = 0, block = 0;
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, Small, 0, 0));
  EXPECT(block >= prop.warpSize && block <= prop.maxThreadsPerBlock && grid >= 1);
  std::puts("ok");
}
