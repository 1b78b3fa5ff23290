// Closes every descriptor but the standard ones in the middle of a session, as daemons do, and goes
// on.
#include <string.h>
#include <unistd.h>

#include "check.h"

int main(void) {
  enum { kBytes = 1 << 16 };
  static unsigned char sent[kBytes], received[kBytes];
  CUdevice device;
  CUcontext context;
  CUdeviceptr first, second;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuMemAlloc(&first, kBytes));
  memset(sent, 0x5a, kBytes);
  CHECK(cuMemcpyHtoD(first, sent, kBytes));

  const long limit = sysconf(_SC_OPEN_MAX);
  for (int fd = 3; fd < (limit < 65536 ? limit : 65536); ++fd) close(fd);

  CHECK(cuMemAlloc(&second, kBytes));
  CHECK(cuMemcpyDtoD(second, first, kBytes));
  CHECK(cuMemcpyDtoH(received, second, kBytes));
  printf("close_fds: %s\n", memcmp(sent, received, kBytes) == 0 ? "ok" : "WRONG");
  CHECK(cuMemFree(first));
  CHECK(cuMemFree(second));
  return 0;
}
