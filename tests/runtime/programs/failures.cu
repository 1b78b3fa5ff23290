// Errors that pass and errors that stay.
#include <cstdint>

#include "check.h"

__global__ void Write(int* target) { *target = 1; }

int main() {
  int* device;
  CHECK(cudaMalloc(&device, 4));
  Write<<<1, 2048>>>(device);
  EXPECT(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  EXPECT(cudaGetLastError() == cudaSuccess);
  EXPECT_ERROR(cudaErrorInvalidDevice, cudaSetDevice(99));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpy(device, nullptr, 4, cudaMemcpyHostToDevice));
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
  Write<<<1, 1>>>(device);
  CHECK(cudaDeviceSynchronize());

  Write<<<1, 1>>>(reinterpret_cast<int*>(uintptr_t{0x10}));
  EXPECT_ERROR(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
  EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
  EXPECT_ERROR(cudaErrorIllegalAddress, cudaMalloc(&device, 4));
  std::puts("ok");
}
