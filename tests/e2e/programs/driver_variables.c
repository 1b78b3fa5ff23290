// A library that keeps the driver's functions in variables of the functions' own names, as programs
// do that load the driver themselves (cuew, slang-rhi). Whoever defines such a function for the
// whole process has these variables bound to code.
#include <dlfcn.h>
#include <stdio.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int (*cuInit)(unsigned);
EXPORTED int (*cuDeviceGetCount)(int*);
EXPORTED int (*cuGetProcAddress_v2)(const char*, void**, int, unsigned long long, int*);

EXPORTED void UseDriver(void);
void UseDriver(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("no driver\n");
    return;
  }
  cuInit = (int (*)(unsigned))dlsym(library, "cuInit");
  cuDeviceGetCount = (int (*)(int*))dlsym(library, "cuDeviceGetCount");
  cuGetProcAddress_v2 = (int (*)(const char*, void**, int, unsigned long long, int*))dlsym(
      library, "cuGetProcAddress_v2");
  int devices = 0;
  printf("init %d\n", cuInit(0));
  printf("count %d\n", cuDeviceGetCount(&devices));
  printf("%s\n", devices > 0 ? "devices" : "no device");
  // The driver must not take our variables for its functions either.
  int (*again)(unsigned) = NULL;
  printf("lookup %d\n", cuGetProcAddress_v2("cuInit", (void**)&again, 13000, 0, NULL));
  printf("init %d\n", again == NULL ? -1 : again(0));
}
