// Pools and stream-ordered memory: contents, accounts, trims and refusals.
#include "check.h"

__global__ void Fill(unsigned* values, size_t n, unsigned value) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) values[i] = value + (unsigned)i;
}

static unsigned long long Attribute(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  unsigned long long value = 0;
  CUDA_CHECK(cudaMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

static unsigned Sum(const unsigned* device, size_t n, cudaStream_t stream) {
  unsigned* host = (unsigned*)malloc(n * sizeof(unsigned));
  CUDA_CHECK(cudaMemcpyAsync(host, device, n * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  unsigned sum = 0;
  for (size_t i = 0; i < n; ++i) sum = sum * 31 + host[i];
  free(host);
  return sum;
}

// Blocks of many sizes that come and go in the order of one stream.
static void InOrder(cudaMemPool_t pool, cudaStream_t stream) {
  for (unsigned round = 1; round <= 12; ++round) {
    const size_t n = (size_t)700 << round;
    unsigned* values;
    CUDA_CHECK(cudaMallocFromPoolAsync((void**)&values, n * sizeof(unsigned), pool, stream));
    Fill<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(values, n, round);
    printf("round %u sum %08x\n", round, Sum(values, n, stream));
    CUDA_CHECK(cudaFreeAsync(values, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
  }
}

static void Accounts(cudaMemPool_t pool, cudaStream_t stream) {
  void* blocks[3];
  for (int i = 0; i < 3; ++i)
    CUDA_CHECK(cudaMallocFromPoolAsync(&blocks[i], (size_t)(i + 1) << 20, pool, stream));
  printf("used %llu high %llu\n", Attribute(pool, cudaMemPoolAttrUsedMemCurrent),
         Attribute(pool, cudaMemPoolAttrUsedMemHigh));
  printf("reserved covers it: %d\n", Attribute(pool, cudaMemPoolAttrReservedMemCurrent) >=
                                         Attribute(pool, cudaMemPoolAttrUsedMemCurrent));
  for (int i = 0; i < 3; ++i) CUDA_CHECK(cudaFreeAsync(blocks[i], stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  unsigned long long zero = 0, one = 1;
  CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
  printf("after the free: used %llu high %llu\n", Attribute(pool, cudaMemPoolAttrUsedMemCurrent),
         Attribute(pool, cudaMemPoolAttrUsedMemHigh));
  CUDA_CHECK(cudaMemPoolTrimTo(pool, 0));
  printf("reserved after a trim: %llu\n", Attribute(pool, cudaMemPoolAttrReservedMemCurrent));
  printf("a high mark can only be reset: %d\n",
         (int)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &one));
  int on = 0;
  CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &on));
  printf("opportunistic re-use %d\n", on);
}

// A pool's memory that is freed the other way round.
static void Mixed(cudaStream_t stream) {
  void *plain, *ordered;
  CUDA_CHECK(cudaMalloc(&plain, 5000));
  CUDA_CHECK(cudaMallocAsync(&ordered, 5000, stream));
  CUDA_CHECK(cudaFreeAsync(plain, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaFree(ordered));
  printf("a second free: %d\n", (int)cudaFree(ordered));
}

int main() {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  cudaMemPool_t standard, current, mine;
  CUDA_CHECK(cudaDeviceGetDefaultMemPool(&standard, 0));
  CUDA_CHECK(cudaDeviceGetMemPool(&current, 0));
  printf("the default pool is current: %d\n", standard == current);
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.maxSize = (size_t)32 << 20;
  CUDA_CHECK(cudaMemPoolCreate(&mine, &properties));
  InOrder(mine, stream);
  InOrder(standard, stream);
  Accounts(mine, stream);
  Mixed(stream);
  void* large;
  printf("more than the pool may have: %d\n",
         (int)cudaMallocFromPoolAsync(&large, (size_t)33 << 20, mine, stream));
  cudaGetLastError();
  CUDA_CHECK(cudaDeviceSetMemPool(0, mine));
  CUDA_CHECK(cudaDeviceGetMemPool(&current, 0));
  printf("mine is current: %d\n", mine == current);
  CUDA_CHECK(cudaMallocAsync(&large, (size_t)3 << 20, stream));
  printf("used %llu\n", Attribute(mine, cudaMemPoolAttrUsedMemCurrent));
  CUDA_CHECK(cudaFreeAsync(large, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaMemPoolDestroy(mine));
  CUDA_CHECK(cudaDeviceGetMemPool(&current, 0));
  printf("the default pool is current again: %d\n", standard == current);
  printf("it stays: %d\n", (int)cudaMemPoolDestroy(standard));
  return 0;
}
