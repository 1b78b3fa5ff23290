// Finds the driver in the way that the argument names, and prints what it answers.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#include "check.h"

typedef CUresult (*InitFunction)(unsigned);
typedef CUresult (*CountFunction)(int*);
typedef CUresult (*GetProcAddressFunction)(const char*, void**, int, cuuint64_t,
                                           CUdriverProcAddressQueryResult*);

static void* Open(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return library;
}

// As frameworks do that distrust the loader: the first libcuda.so* in the directories of
// LD_LIBRARY_PATH, then /lib.
static void* OpenByScan(void) {
  char directories[65536];
  const char* given = getenv("LD_LIBRARY_PATH");
  snprintf(directories, sizeof(directories), "%s:/lib:/lib/x86_64-linux-gnu",
           given == NULL ? "" : given);
  for (char *rest = NULL, *path = strtok_r(directories, ":", &rest); path;
       path = strtok_r(NULL, ":", &rest)) {
    DIR* directory = opendir(path);
    if (directory == NULL) continue;
    const struct dirent* entry;
    while ((entry = readdir(directory)) != NULL) {
      if (strncmp(entry->d_name, "libcuda.so", 10) != 0) continue;
      char full[PATH_MAX * 2];
      snprintf(full, sizeof(full), "%s/%s", path, entry->d_name);
      closedir(directory);
      return Open(full);
    }
    closedir(directory);
  }
  fprintf(stderr, "no libcuda.so in any directory\n");
  exit(1);
}

static void Answer(InitFunction init, CountFunction count) {
  int devices = 0;
  if (init == NULL || count == NULL) {
    printf("not found\n");
    return;
  }
  const int initialised = (int)init(0);
  const int counted = (int)count(&devices);
  printf("init %d, count %d, %s\n", initialised, counted, devices > 0 ? "devices" : "no device");
}

static void AnswerBySymbols(void* library) {
  Answer((InitFunction)dlsym(library, "cuInit"), (CountFunction)dlsym(library, "cuDeviceGetCount"));
}

static void AnswerByProcAddress(void* library) {
  GetProcAddressFunction lookup = (GetProcAddressFunction)dlsym(library, "cuGetProcAddress_v2");
  void *self = NULL, *init = NULL, *count = NULL, *allocate = NULL, *unknown = NULL;
  CUdriverProcAddressQueryResult found = 0;
  CHECK(lookup("cuGetProcAddress", &self, 12000, 0, &found));
  printf("itself: %s\n",
         self != NULL && found == CU_GET_PROC_ADDRESS_SUCCESS ? "found" : "missing");
  lookup = (GetProcAddressFunction)self;
  CHECK(lookup("cuInit", &init, 13000, 0, &found));
  CHECK(lookup("cuDeviceGetCount", &count, 13000, 0, &found));
  CHECK(lookup("cuMemAlloc", &allocate, 13000, 0, &found));
  printf("cuMemAlloc: %s\n",
         allocate == dlsym(library, "cuMemAlloc_v2") ? "the second version" : "another version");
  const CUresult refused = lookup("cuNoSuchFunction", &unknown, 13000, 0, &found);
  printf("unknown: %d, %s, %d\n", (int)refused, unknown == NULL ? "null" : "not null", (int)found);
  Answer((InitFunction)init, (CountFunction)count);
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "";
  printf("%s\n", way);
  if (strcmp(way, "soname") == 0) {
    AnswerBySymbols(Open("libcuda.so.1"));
  } else if (strcmp(way, "unversioned") == 0) {
    AnswerBySymbols(Open("libcuda.so"));
  } else if (strcmp(way, "scan") == 0) {
    AnswerBySymbols(OpenByScan());
  } else if (strcmp(way, "proc-address") == 0) {
    AnswerByProcAddress(Open("libcuda.so.1"));
  } else {
    fprintf(stderr, "usage: find soname|unversioned|scan|proc-address\n");
    return 2;
  }
  return 0;
}
