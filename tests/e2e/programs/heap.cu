// Memory that kernels take by malloc and new: it outlives the launch, other kernels free it, and
// malloc gives null once the heap is full.
#include "check.h"

struct Item {
  Item* next;
  int value;
  __device__ Item(Item* n, int v) : next(n), value(v) {}
};

__global__ void Push(Item** lists, int count) {
  Item* list = nullptr;
  for (int k = 0; k < count; ++k) list = new Item(list, threadIdx.x * 100 + k);
  lists[threadIdx.x] = list;
}

__global__ void Pop(Item** lists, int* sums) {
  int sum = 0;
  for (Item* item = lists[threadIdx.x]; item != nullptr;) {
    Item* next = item->next;
    sum += item->value;
    delete item;
    item = next;
  }
  sums[threadIdx.x] = sum;
}

__global__ void Fill(int* blocks, void** kept) {
  for (void** last = kept;; last = static_cast<void**>(*last)) {
    *last = malloc(64 << 10);
    if (*last == nullptr) return;
    ++*blocks;
  }
}

__global__ void Empty(void** kept) {
  for (void* block = *kept; block != nullptr;) {
    void* next = *static_cast<void**>(block);
    free(block);
    block = next;
  }
}

int main() {
  const int threads = 64;
  size_t limit = 0;
  CUDA_CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  printf("the heap has %zu bytes\n", limit);
  CUDA_CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
  CUDA_CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  printf("and now %zu\n", limit);
  Item** lists;
  int* sums;
  CUDA_CHECK(cudaMalloc(&lists, threads * sizeof *lists));
  CUDA_CHECK(cudaMalloc(&sums, threads * sizeof *sums));
  for (int round = 1; round <= 3; ++round) {
    Push<<<1, threads>>>(lists, 10 * round);
    Pop<<<1, threads>>>(lists, sums);
    int got[threads];
    CUDA_CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
    printf("round %d: %d %d\n", round, got[0], got[threads - 1]);
  }
  for (int round = 0; round < 2; ++round) {
    CUDA_CHECK(cudaMemset(sums, 0, sizeof *sums));
    CUDA_CHECK(cudaMemset(lists, 0, sizeof *lists));
    Fill<<<1, 1>>>(sums, reinterpret_cast<void**>(lists));
    Empty<<<1, 1>>>(reinterpret_cast<void**>(lists));
    int got = 0;
    CUDA_CHECK(cudaMemcpy(&got, sums, sizeof got, cudaMemcpyDeviceToHost));
    printf("%d blocks of 64 KiB\n", got);
  }
  return 0;
}
