// Starts itself with an empty environment. That child finds no device library, with Laneway as
// without, and says so instead of crashing; the parent's own session is untouched.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int RunChild(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  printf("child: %s\n", library == NULL ? "no device library" : "a device library of the system");
  return 0;
}

int main(int argc, char** argv) {
  if (argc > 1) return RunChild();
  typedef CUresult (*Init)(unsigned);
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return 1;
  Init init = (Init)dlsym(library, "cuInit");
  printf("parent: %d\n", (int)init(0));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    char* arguments[] = {argv[0], "child", NULL};
    char* environment[] = {NULL};
    execve("/proc/self/exe", arguments, environment);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child ended with %d\n", status);
  printf("parent: %d\n", (int)init(0));
  return 0;
}
