// Allocates as many MiB as the argument says and prints the result's code; with a second argument
// also how much memory there is. With "step" it does so for
// every byte that it reads. With "array" the memory is an array's, and the program stays for a line
// of input.
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
  if (argc > 2 && strcmp(argv[2], "array") == 0) {
    const CUDA_ARRAY_DESCRIPTOR rows = {16384, megabytes * 16, CU_AD_FORMAT_FLOAT, 1};
    CUarray array;
    size_t available = 0, total = 0;
    printf("array of %zu MiB: %d\n", megabytes, (int)cuArrayCreate(&array, &rows));
    CHECK(cuMemGetInfo(&available, &total));
    printf("used %zu MiB\n", (total - available) >> 20);
    fflush(stdout);
    (void)getchar();
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
