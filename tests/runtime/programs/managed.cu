// __managed__ variables: host and device follow one address.
#include "check.h"

__managed__ int counters[4] = {1, 2, 3, 4};
__device__ __managed__ float scale = 1.5f;

__global__ void Add(int n) {
  counters[threadIdx.x] += n;
  if (threadIdx.x == 0) scale *= 2;
}

int main() {
  EXPECT(counters[0] == 1 && scale == 1.5f);
  counters[1] = 20;
  Add<<<1, 4>>>(5);
  CHECK(cudaDeviceSynchronize());
  EXPECT(counters[0] == 6 && counters[1] == 25 && counters[3] == 9 && scale == 3);
  void* address = nullptr;
  size_t bytes = 0;
  CHECK(cudaGetSymbolAddress(&address, counters));
  CHECK(cudaGetSymbolSize(&bytes, counters));
  EXPECT(address == counters && bytes == sizeof counters);
  const int value = 7;
  CHECK(cudaMemcpyToSymbol(counters, &value, sizeof value, 2 * sizeof value));
  EXPECT(counters[2] == 7);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, counters));
  EXPECT(attributes.type == cudaMemoryTypeManaged);
  std::puts("ok");
}
