// Managed memory: the host and kernels read and write it in turns, in one large block and in
// thousands of small ones; copies, fills, advice and prefetching; and what is refused.
#include <cstring>
#include <vector>

#include "check.h"

namespace {

struct Node {
  Node* next;
  int value;
};

__global__ void Scale(float* values, int count, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * factor + 1;
}

// One thread follows the list that the host has made.
__global__ void Walk(Node* node, int* sum) {
  *sum = 0;
  for (; node != nullptr; node = node->next) {
    *sum += node->value;
    ++node->value;
  }
}

double SumOf(const float* values, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];
  return sum;
}

void InTurns() {
  constexpr int kCount = 3 << 20;
  float* values;
  CUDA_CHECK(cudaMallocManaged(&values, kCount * sizeof(float)));
  for (int i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 97);
  for (int round = 0; round < 16; ++round) {
    Scale<<<(kCount + 255) / 256, 256>>>(values, kCount, 0.5f);
    CUDA_CHECK(cudaDeviceSynchronize());
    printf("round %d: %.3f\n", round, SumOf(values, kCount));
    values[round] += 1000;
  }
  CUDA_CHECK(cudaFree(values));
}

void ManySmall() {
  constexpr int kNodes = 5000;
  std::vector<Node*> nodes(kNodes);
  int* sum;
  CUDA_CHECK(cudaMallocManaged(&sum, sizeof(int)));
  for (int i = 0; i < kNodes; ++i) {
    CUDA_CHECK(cudaMallocManaged(&nodes[i], sizeof(Node)));
    *nodes[i] = {nullptr, i};
    if (i > 0) nodes[i - 1]->next = nodes[i];
  }
  for (int round = 0; round < 4; ++round) {
    Walk<<<1, 1>>>(nodes[0], sum);
    CUDA_CHECK(cudaDeviceSynchronize());
    printf("nodes: %d, the last has %d\n", *sum, nodes[kNodes - 1]->value);
    nodes[round]->value = 0;
  }
  for (Node* const node : nodes) CUDA_CHECK(cudaFree(node));
  CUDA_CHECK(cudaFree(sum));
}

void Copies() {
  constexpr size_t kBytes = 300000;
  unsigned char *managed, *device;
  std::vector<unsigned char> host(kBytes);
  CUDA_CHECK(cudaMallocManaged(&managed, kBytes));
  CUDA_CHECK(cudaMalloc(&device, kBytes));
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < kBytes; ++i) host[i] = static_cast<unsigned char>(i * 7 + round);
    CUDA_CHECK(cudaMemcpy(managed, host.data(), kBytes, cudaMemcpyHostToDevice));
    const int whole = memcmp(managed, host.data(), kBytes) == 0;
    CUDA_CHECK(cudaMemset(managed + 100, round, 1000));
    CUDA_CHECK(cudaDeviceSynchronize());
    const int filled = managed[99] == host[99] && managed[100] == round && managed[1099] == round;
    CUDA_CHECK(cudaMemcpy(device, managed, kBytes, cudaMemcpyDefault));
    CUDA_CHECK(cudaMemset(managed, 0, kBytes));
    CUDA_CHECK(cudaMemcpy2D(managed, 1000, device, 1000, 500, 200, cudaMemcpyDefault));
    CUDA_CHECK(cudaDeviceSynchronize());
    const int rows =
        managed[5000] == host[5000] && managed[5499] == host[5499] && managed[5500] == 0;
    CUDA_CHECK(cudaMemcpy(host.data(), managed, kBytes, cudaMemcpyDeviceToHost));
    const int back = memcmp(managed, host.data(), kBytes) == 0;
    printf("copies %d: %d %d %d %d\n", round, whole, filled, rows, back);
  }
  CUDA_CHECK(cudaFree(managed));
  CUDA_CHECK(cudaFree(device));
}

void Advice() {
  CUdeviceptr managed, device;
  CHECK(cuMemAllocManaged(&managed, 10000, CU_MEM_ATTACH_HOST));
  CHECK(cuMemAlloc(&device, 10000));
  const CUmemLocation first = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  const auto advise = [&](CUdeviceptr address, size_t bytes) {
    return cuMemAdvise(address, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, first);
  };
  const auto prefetch = [&](CUdeviceptr address, size_t bytes, unsigned flags) {
    return cuMemPrefetchAsync(address, bytes, first, flags, nullptr);
  };
  printf("advice: %d %d %d %d\n", advise(managed, 10000), advise(managed + 4096, 5904),
         advise(managed, 10001), advise(device, 10000));
  printf("prefetch: %d %d %d %d\n", prefetch(managed, 10000, 0), prefetch(managed, 10000, 1),
         prefetch(managed, 0, 0), prefetch(device, 4, 0));
  printf("attach: %d %d\n", cuStreamAttachMemAsync(nullptr, managed, 0, CU_MEM_ATTACH_GLOBAL),
         cuStreamAttachMemAsync(nullptr, device, 0, CU_MEM_ATTACH_GLOBAL));
  int read_mostly = -1;
  printf("range: %d\n", cuMemRangeGetAttribute(&read_mostly, sizeof read_mostly,
                                               CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, device, 4));
  unsigned is_managed = 7, type = 7;
  CUdeviceptr host = 0;
  CHECK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed + 5));
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, managed + 5));
  CHECK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, managed + 5));
  printf("pointer: %u %u %d\n", is_managed, type, host == managed + 5);
  CUdeviceptr refused = 0;
  printf("refused: %d %d %d %d\n", cuMemAllocManaged(&refused, 0, CU_MEM_ATTACH_GLOBAL),
         cuMemAllocManaged(&refused, 8, 77), cuMemFreeHost(reinterpret_cast<void*>(managed)),
         cuMemFree(managed + 512));
  CHECK(cuMemFree(managed));
  printf("freed twice: %d\n", cuMemFree(managed));
  CHECK(cuMemFree(device));
}

}  // namespace

int main() {
  InTurns();
  ManySmall();
  Copies();
  Advice();
  int has = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&has, cudaDevAttrManagedMemory, 0));
  printf("the device has managed memory: %d\n", has);
  return 0;
}
