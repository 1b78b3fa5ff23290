// The shortest useful session: initialise, 1 MiB, copy in, copy out, free. With an argument, it
// holds the session open: prints "open" and waits for the end of standard input.
#include <string.h>
#include <unistd.h>

#include "check.h"

int main(int argc, char** argv) {
  enum { kBytes = 1 << 20 };
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));

  unsigned char* sent = malloc(kBytes);
  unsigned char* received = calloc(1, kBytes);
  for (int i = 0; i < kBytes; ++i) sent[i] = (unsigned char)(i * 31 + i / 256);
  CUdeviceptr address;
  CHECK(cuMemAlloc(&address, kBytes));
  CHECK(cuMemcpyHtoD(address, sent, kBytes));
  CHECK(cuMemcpyDtoH(received, address, kBytes));
  const int same = memcmp(sent, received, kBytes) == 0;
  printf("connect: %s\n", same ? "ok" : "WRONG");
  if (argc == 1) CHECK(cuMemFree(address));  // a held session holds its memory
  free(sent);
  free(received);

  if (argc > 1) {
    char byte;
    printf("open\n");
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {
    }
  }
  CHECK(cuDevicePrimaryCtxRelease(device));
  return same ? 0 : 1;
}
