// Uses the driver through a library that has variables of the driver's names. The program opens the
// library, or is linked to it (LINKED).
#include <dlfcn.h>
#include <stdio.h>

#ifdef LINKED
void UseDriver(void);
int main(void) {
  UseDriver();
  return 0;
}
#else
int main(void) {
  void* library = dlopen("libe2e_variables.so", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  ((void (*)(void))dlsym(library, "UseDriver"))();
  return 0;
}
#endif
