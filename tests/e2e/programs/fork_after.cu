// Forks with a live context: the child's calls fail with code 3, the parent goes on, and a child
// that execs works.
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int Wait(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child ? status : -1;
}

int main(int argc, char** argv) {
  CUdeviceptr address = 0;
  int number = 42, back = 0;
  CUDA_CHECK(cudaFree(nullptr));
  CHECK(cuMemAlloc(&address, 4096));
  CHECK(cuMemcpyHtoD(address, &number, sizeof(number)));
  if (argc > 1) {
    CHECK(cuMemcpyDtoH(&back, address, sizeof(back)));
    printf("after exec: %d\n", back);
    return 0;
  }

  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    int value = 0;
    CUdeviceptr other = 0;
    printf("child: copy %d, allocate %d, synchronise %d\n",
           cuMemcpyDtoH(&value, address, sizeof(value)), cuMemAlloc(&other, 4096),
           cuCtxSynchronize());
    fflush(stdout);
    _exit(0);
  }
  printf("child ended with %d\n", Wait(child));
  CHECK(cuMemcpyDtoH(&back, address, sizeof(back)));
  printf("parent: %d\n", back);

  fflush(stdout);
  child = fork();
  if (child == 0) {
    char again[] = "again";
    char* arguments[] = {argv[0], again, nullptr};
    execv("/proc/self/exe", arguments);
    _exit(127);
  }
  printf("child ended with %d\n", Wait(child));
  CHECK(cuMemFree(address));
  return 0;
}
