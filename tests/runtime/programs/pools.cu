// Memory in stream order.
#include <vector>

#include "check.h"

__global__ void Fill(char* bytes, size_t n, char value) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < n) bytes[i] = value;
}

int main() {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  std::vector<char> back;
  for (int round = 1; round <= 20; ++round) {
    const size_t bytes = size_t{1000} * round;
    char* device;
    CHECK(cudaMallocAsync(&device, bytes, stream));
    Fill<<<static_cast<unsigned>((bytes + 255) / 256), 256, 0, stream>>>(device, bytes,
                                                                         static_cast<char>(round));
    back.assign(bytes, 0);
    CHECK(cudaMemcpyAsync(back.data(), device, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(device, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (const char byte : back) EXPECT(byte == round);
  }

  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long threshold = 1 << 20, read = 0;
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &read));
  EXPECT(read == threshold);
  void* pointer;
  CHECK(cudaMallocFromPoolAsync(&pointer, 4096, pool, stream));
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &read));
  EXPECT(read >= 4096);
  CHECK(cudaFreeAsync(pointer, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemPoolTrimTo(pool, 0));
  CHECK(cudaStreamDestroy(stream));
  std::puts("ok");
}
