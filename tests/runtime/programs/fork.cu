// A child made before the first use has the device to itself; one made after is told so.
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void Set(int* out) { *out = 6; }

namespace {

int Run() {
  int value = 0;
  int* device;
  CHECK(cudaMalloc(&device, sizeof(int)));
  Set<<<1, 1>>>(device);
  CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

int StatusOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

int main() {
  const pid_t before = fork();
  if (before == 0) _exit(Run() == 6 ? 0 : 1);
  EXPECT(StatusOf(before) == 0);
  EXPECT(Run() == 6);
  const pid_t after = fork();
  if (after == 0) {
    void* pointer;
    const bool told = cudaMalloc(&pointer, 4) == cudaErrorInitializationError &&
                      cudaGetLastError() == cudaErrorInitializationError;
    _exit(told ? 0 : 1);
  }
  EXPECT(StatusOf(after) == 0);
  EXPECT(Run() == 6);
  std::puts("ok");
}
