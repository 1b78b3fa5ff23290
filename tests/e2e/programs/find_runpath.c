// dlopen of a library that only this program's own RUNPATH leads to: whoever interposes dlopen must
// not hide the caller from the loader. Then the driver, as usual.
#include <dlfcn.h>

#include "check.h"

int main(void) {
  typedef int (*Number)(void);
  typedef CUresult (*Init)(unsigned);
  void* private_library = dlopen("libe2e_private.so", RTLD_NOW);
  printf("private library: %d\n",
         private_library == NULL ? -1 : ((Number)dlsym(private_library, "E2eNumber"))());
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  printf("driver: %d\n", library == NULL ? -1 : (int)((Init)dlsym(library, "cuInit"))(0));
  return 0;
}
