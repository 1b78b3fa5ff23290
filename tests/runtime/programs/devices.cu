// The device's state ends with a reset, the program's code does not.
#include <thread>

#include "check.h"

__device__ int counter = 1;

__global__ void Count(int* out) {
  *out = counter;
  ++counter;
}

namespace {

int Run() {
  int value = 0;
  int* device;
  CHECK(cudaMalloc(&device, sizeof(int)));
  Count<<<1, 1>>>(device);
  CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(device));
  return value;
}

}  // namespace

int main() {
  int count = 0, device = -1, version = 0;
  CHECK(cudaGetDeviceCount(&count));
  EXPECT(count >= 1);
  CHECK(cudaGetDevice(&device));
  EXPECT(device == 0);
  CHECK(cudaRuntimeGetVersion(&version));
  EXPECT(version / 1000 == 13);
  EXPECT(Run() == 1);
  EXPECT(Run() == 2);
  std::thread([] { EXPECT(Run() == 3); }).join();
  CHECK(cudaDeviceReset());
  EXPECT(Run() == 1);  // loaded anew
  std::thread([] { CHECK(cudaDeviceReset()); }).join();
  EXPECT(Run() == 1);
  size_t heap = 0;
  CHECK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
  char bus_id[32];
  CHECK(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, 0));
  CHECK(cudaDeviceGetByPCIBusId(&device, bus_id));
  EXPECT(device == 0);
  cudaDeviceProp wanted = {};
  CHECK(cudaChooseDevice(&device, &wanted));
  EXPECT(device == 0);
  std::puts("ok");
}
