// Allocates as many MiB as the argument says and prints the result's code; with a second argument
// also how much memory there is. With "step" it does so for
// every byte that it reads.
#include <string.h>

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
  if (argc > 2 && strcmp(argv[2], "step") == 0) {
    while (getchar() != EOF) {
      printf("%d\n", (int)cuMemAlloc(&address, megabytes << 20));
      fflush(stdout);
    }
    return 0;
  }
  if (argc > 2) {
    size_t device_total = 0, available = 0, total = 0;
    CHECK(cuDeviceTotalMem(&device_total, device));
    CHECK(cuMemGetInfo(&available, &total));
    printf("total %zu MiB, %zu MiB\n", device_total >> 20, total >> 20);
    if (available > total) printf("more is free than there is\n");
  }
  printf("allocate %zu MiB: %d\n", megabytes, (int)cuMemAlloc(&address, megabytes << 20));
  printf("allocate 1 MiB: %d\n", (int)cuMemAlloc(&address, 1 << 20));
  return 0;
}
