// Linked to the driver. Prints the driver's answer, the program's arguments and name, and the
// libraries that its children will have preloaded.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  char name[64] = "";
  FILE* file = fopen("/proc/self/comm", "r");
  if (file == NULL || fgets(name, sizeof(name), file) == NULL) return 1;
  fclose(file);
  printf("init %d\nname %s", (int)cuInit(0), name);
  for (int i = 1; i < argc; ++i) printf("word '%s'\n", argv[i]);
  const char* preloaded = getenv("LD_PRELOAD");
  for (char* entry = strtok(strdup(preloaded == NULL ? "" : preloaded), ":"); entry != NULL;
       entry = strtok(NULL, ":")) {
    printf("preloaded %s\n", strrchr(entry, '/') + 1);
  }
  return 0;
}
