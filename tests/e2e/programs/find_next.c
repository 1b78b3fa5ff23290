// Defines a driver function itself, as profilers do, and calls the next definition by
// dlsym(RTLD_NEXT).
#define _GNU_SOURCE
#include <dlfcn.h>

#include "check.h"

static int calls = 0;

__attribute__((visibility("default"))) CUresult cuInit(unsigned flags) {
  typedef CUresult (*Init)(unsigned);
  ++calls;
  Init next = (Init)dlsym(RTLD_NEXT, "cuInit");
  return next == NULL ? CUDA_ERROR_NOT_FOUND : next(flags);
}

int main(void) {
  int devices = 0;
  CHECK(cuInit(0));
  CHECK(cuDeviceGetCount(&devices));
  printf("wrapped %d call, %s\n", calls, devices > 0 ? "devices" : "no device");
  return 0;
}
