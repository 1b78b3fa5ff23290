// Built with nvcc's default, the static runtime: nothing can stand in for it, so it must be refused
// with a reason.
#include "check.h"

int main() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  printf("error %d\n", static_cast<int>(error));
  return 0;
}
