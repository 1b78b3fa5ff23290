// Host memory, what is known of addresses, and copies whose direction the driver finds.
#include "check.h"

__global__ void Increment(int* value) { ++*value; }

namespace {

void PinnedAndMapped() {
  int* host;
  CHECK(cudaHostAlloc(&host, 64, cudaHostAllocMapped));
  *host = 41;
  int* device;
  CHECK(cudaHostGetDevicePointer(&device, host, 0));
  Increment<<<1, 1>>>(device);
  CHECK(cudaDeviceSynchronize());
  EXPECT(*host == 42);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, host));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == host);
  CHECK(cudaFreeHost(host));
}

void Attributes() {
  int local = 0;
  int* device;
  CHECK(cudaMalloc(&device, 1024));
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, device + 3));
  EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  EXPECT(attributes.devicePointer == device + 3);
  CHECK(cudaPointerGetAttributes(&attributes, &local));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  EXPECT(cudaGetLastError() == cudaSuccess);
  CHECK(cudaFree(device));
}

void DefaultKind() {
  int *first, *second;
  int in = 12, out = 0;
  CHECK(cudaMalloc(&first, sizeof(int)));
  CHECK(cudaMalloc(&second, sizeof(int)));
  CHECK(cudaMemcpy(first, &in, sizeof in, cudaMemcpyDefault));
  CHECK(cudaMemcpy(second, first, sizeof in, cudaMemcpyDefault));
  CHECK(cudaMemcpyAsync(&out, second, sizeof in, cudaMemcpyDefault, nullptr));
  CHECK(cudaDeviceSynchronize());
  EXPECT(out == 12);
  CHECK(cudaMemcpyPeer(first, 0, second, 0, sizeof in));
  CHECK(cudaFree(first));
  CHECK(cudaFree(second));
}

void Amounts() {
  size_t before = 0, during = 0, after = 0, total = 0;
  CHECK(cudaMemGetInfo(&before, &total));
  void* pointer;
  CHECK(cudaMalloc(&pointer, size_t{16} << 20));
  CHECK(cudaMemGetInfo(&during, &total));
  EXPECT(during <= before - (size_t{16} << 20) && total >= before);
  CHECK(cudaFree(pointer));
  CHECK(cudaMemGetInfo(&after, &total));
  EXPECT(after == before);
  EXPECT_ERROR(cudaErrorMemoryAllocation, cudaMalloc(&pointer, total + 1));
  EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&pointer, 1));  // and the device is as usable as before
  CHECK(cudaFree(pointer));
}

}  // namespace

int main() {
  PinnedAndMapped();
  Attributes();
  DefaultKind();
  Amounts();
  std::puts("ok");
}
