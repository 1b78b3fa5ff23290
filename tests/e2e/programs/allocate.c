// Allocates as many MiB as the argument says and prints the result's code.
#include "check.h"

int main(int argc, char** argv) {
  CUdevice device;
  CUcontext context;
  CUdeviceptr address = 0;
  const size_t megabytes = argc > 1 ? (size_t)atol(argv[1]) : 1;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  printf("allocate %zu MiB: %d\n", megabytes, (int)cuMemAlloc(&address, megabytes << 20));
  printf("allocate 1 MiB: %d\n", (int)cuMemAlloc(&address, 1 << 20));
  return 0;
}
