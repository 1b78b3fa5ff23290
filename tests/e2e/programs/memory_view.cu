// Memory by every query that a program has, after each of a few steps; before each it waits for a
// byte on standard input. A line: free and total by driver and runtime, then used and reserved of
// the default pool and of one of its own, then what cudaMalloc has.
#include <cuda.h>
#include <unistd.h>

#include "check.h"

constexpr size_t kMiB = 1 << 20;

static cudaMemPool_t pools[2];

static unsigned long long Attribute(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  unsigned long long value = 0;
  CUDA_CHECK(cudaMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

static void Tell(size_t allocated_mib) {
  size_t free_bytes[2], total_bytes[2];
  if (cuMemGetInfo(&free_bytes[0], &total_bytes[0]) != CUDA_SUCCESS) exit(1);
  CUDA_CHECK(cudaMemGetInfo(&free_bytes[1], &total_bytes[1]));
  printf("%zu %zu %zu %zu", free_bytes[0], total_bytes[0], free_bytes[1], total_bytes[1]);
  for (const cudaMemPool_t pool : pools) {
    printf(" %llu %llu", Attribute(pool, cudaMemPoolAttrUsedMemCurrent),
           Attribute(pool, cudaMemPoolAttrReservedMemCurrent));
  }
  printf(" %zu\n", allocated_mib * kMiB);
  fflush(stdout);
  char byte;
  if (read(0, &byte, 1) < 0) exit(2);
}

static void* Async(size_t mib, cudaMemPool_t pool) {
  void* memory;
  CUDA_CHECK(cudaMallocFromPoolAsync(&memory, mib * kMiB, pool, nullptr));
  CUDA_CHECK(cudaDeviceSynchronize());
  return memory;
}

static void FreeAsync(void* memory) {
  CUDA_CHECK(cudaFreeAsync(memory, nullptr));
  CUDA_CHECK(cudaDeviceSynchronize());
}

int main() {
  void *large[2], *small;
  CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pools[0], 0));
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  CUDA_CHECK(cudaMemPoolCreate(&pools[1], &properties));
  unsigned long long all = ~0ull;
  CUDA_CHECK(cudaMemPoolSetAttribute(pools[1], cudaMemPoolAttrReleaseThreshold, &all));
  Tell(0);
  for (void*& memory : large) CUDA_CHECK(cudaMalloc(&memory, 10 * kMiB));
  Tell(20);
  CUDA_CHECK(cudaMalloc(&small, 100 << 10));
  Tell(22);  // blocks like this share a range
  void* const first = Async(8, pools[0]);
  void* const second = Async(8, pools[0]);
  Tell(22);
  FreeAsync(first);
  Tell(22);
  void* const third = Async(6, pools[1]);
  Tell(22);
  FreeAsync(third);
  Tell(22);
  CUDA_CHECK(cudaMemPoolTrimTo(pools[1], 0));
  CUDA_CHECK(cudaFree(large[0]));
  Tell(12);
  FreeAsync(second);
  CUDA_CHECK(cudaFree(large[1]));
  CUDA_CHECK(cudaFree(small));
  Tell(0);
  return 0;
}
