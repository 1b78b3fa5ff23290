/* A client of a served function: ask NAME REQUEST, floats as the hexadecimal digits of their bytes,
 * in and out. */
#include "include/laneway_function.h"

int main(int argc, char** argv) {
  unsigned char in[32] = {0}, out[32] = {0};
  char why[256];
  if (argc != 3) return 2;
  const size_t bytes = strlen(argv[2]) / 2 < sizeof in ? strlen(argv[2]) / 2 : sizeof in;
  for (size_t i = 0; i < bytes; ++i) {
    const char digits[3] = {argv[2][2 * i], argv[2][2 * i + 1], 0};
    in[i] = (unsigned char)strtoul(digits, NULL, 16);
  }
  const uint64_t count = bytes / sizeof(float);
  const struct laneway_tensor input = {"input0", LANEWAY_F32, 1, &count, in, count * sizeof(float)};
  const struct laneway_tensor output = {"output0", LANEWAY_F32, 0, NULL, out, sizeof out};
  const int fd = laneway_function_connect(argv[1]);
  if (fd < 0) {
    perror(argv[1]);
    return 1;
  }
  if (laneway_function_call(fd, &input, 1, &output, 1, why, sizeof why) != 0) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  for (size_t i = 0; i < sizeof out; ++i) printf("%02x", out[i]);
  printf("\n");
  close(fd);
  return 0;
}
