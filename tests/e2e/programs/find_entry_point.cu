// Asks the runtime for driver functions and calls them.
#include "check.h"

typedef CUresult (*CountFunction)(int*);
typedef CUresult (*AllocateFunction)(CUdeviceptr*, size_t);

int main() {
  void *count = nullptr, *allocate = nullptr, *unknown = nullptr;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaFree(nullptr));
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuDeviceGetCount", &count, 13000, cudaEnableDefault,
                                              &found));
  printf("cuDeviceGetCount: %d\n", found);
  CUDA_CHECK(
      cudaGetDriverEntryPointByVersion("cuMemAlloc", &allocate, 13000, cudaEnableDefault, &found));
  printf("cuMemAlloc: %d\n", found);
  int devices = 0;
  CUdeviceptr address = 0;
  CHECK(reinterpret_cast<CountFunction>(count)(&devices));
  CHECK(reinterpret_cast<AllocateFunction>(allocate)(&address, 1024));
  printf("%s, %s\n", devices > 0 ? "devices" : "no device",
         address != 0 ? "an address" : "no address");
  cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &unknown, 13000, cudaEnableDefault, &found);
  printf("unknown: %s, %d\n", unknown == nullptr ? "null" : "not null", found);
  return 0;
}
