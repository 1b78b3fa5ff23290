/* A client of `laneway serve`, for C programs: asks a served function, without CUDA.
 *
 *     int fd = laneway_function_connect("digits");
 *     float pixels[64], logits[10];
 *     uint64_t shape = 64;
 *     struct laneway_tensor in = {"input0", LANEWAY_F32, 1, &shape, pixels, sizeof pixels};
 *     struct laneway_tensor out = {"output0", LANEWAY_F32, 0, NULL, logits, sizeof logits};
 *     char why[256];
 *     if (laneway_function_call(fd, &in, 1, &out, 1, why, sizeof why) != 0) fprintf(stderr, "%s\n",
 * why); close(fd);
 *
 * Nothing to link. All functions wait for the server; one connection has one call at a time. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum laneway_element {
  LANEWAY_F16,
  LANEWAY_F32,
  LANEWAY_F64,
  LANEWAY_I8,
  LANEWAY_I16,
  LANEWAY_I32,
  LANEWAY_I64,
  LANEWAY_U8,
  LANEWAY_U16,
  LANEWAY_U32,
  LANEWAY_U64,
  LANEWAY_BOOL
};

/* Of an output only the name, the place for the bytes and their number are read. */
struct laneway_tensor {
  const char* name;
  enum laneway_element type;
  uint8_t rank;
  const uint64_t* shape;
  void* bytes;
  uint64_t size;
};

static inline int laneway_function_send_(int fd, const void* data, size_t size) {
  const char* at = (const char*)data;
  while (size != 0) {
    const ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return -1;
    at += sent;
    size -= (size_t)sent;
  }
  return 0;
}

static inline int laneway_function_receive_(int fd, void* data, size_t size) {
  char* at = (char*)data;
  while (size != 0) {
    const ssize_t got = recv(fd, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    at += got;
    size -= (size_t)got;
  }
  return 0;
}

/* A connection to the function of this name, or -1 with errno: ENOENT or ECONNREFUSED when it is
 * not served. The runtime directory is found as Laneway finds it. */
static inline int laneway_function_connect(const char* name) {
  const char* const own = getenv("LANEWAY_RUNTIME_DIR");
  const char* const system = getenv("XDG_RUNTIME_DIR");
  struct sockaddr_un address;
  int length, fd;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  if (own != NULL && *own != 0) {
    length = snprintf(address.sun_path, sizeof address.sun_path, "%s/function-%s.sock", own, name);
  } else if (system != NULL && *system != 0) {
    length = snprintf(address.sun_path, sizeof address.sun_path, "%s/laneway/function-%s.sock",
                      system, name);
  } else {
    length = snprintf(address.sun_path, sizeof address.sun_path,
                      "/dev/shm/laneway-%u/function-%s.sock", (unsigned)geteuid(), name);
  }
  if (length < 0 || (size_t)length >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (const struct sockaddr*)&address, sizeof address) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

/* The frame of a request: functions/serving/frames.h tells the form. */
static inline int laneway_function_request_(int fd, const struct laneway_tensor* inputs,
                                            uint32_t count) {
  uint32_t head[3] = {8, 1, count};
  uint64_t size = 8;
  for (uint32_t i = 0; i < count; ++i)
    size += 16 + 8u * inputs[i].rank + strlen(inputs[i].name) + inputs[i].size;
  if (size > UINT32_MAX) return -1;
  head[0] = (uint32_t)size;
  if (laneway_function_send_(fd, head, sizeof head) != 0) return -1;
  for (uint32_t i = 0; i < count; ++i) {
    const struct laneway_tensor* const one = &inputs[i];
    const uint16_t name = (uint16_t)strlen(one->name);
    unsigned char fixed[8] = {0};
    memcpy(fixed, &name, sizeof name);
    fixed[2] = (unsigned char)one->type;
    fixed[3] = one->rank;
    if (laneway_function_send_(fd, fixed, sizeof fixed) != 0 ||
        laneway_function_send_(fd, one->shape, 8u * one->rank) != 0 ||
        laneway_function_send_(fd, &one->size, sizeof one->size) != 0 ||
        laneway_function_send_(fd, one->name, name) != 0 ||
        laneway_function_send_(fd, one->bytes, one->size) != 0)
      return -1;
  }
  return 0;
}

/* Copies one output of an answer to where the caller wants it; -1: the answer is malformed, or the
 * caller's place has another size. */
static inline int laneway_function_output_(const char** at, const char* end,
                                           const struct laneway_tensor* outputs, uint32_t count) {
  uint16_t name = 0;
  uint64_t size = 0;
  if (end - *at < 16) return -1;
  memcpy(&name, *at, sizeof name);
  const size_t sides = 8u * (unsigned char)(*at)[3];
  *at += 8;
  if ((size_t)(end - *at) < sides + 8) return -1;
  *at += sides;
  memcpy(&size, *at, sizeof size);
  *at += 8;
  if ((size_t)(end - *at) < name || (uint64_t)(end - *at) - name < size) return -1;
  for (uint32_t i = 0; i < count; ++i) {
    if (strlen(outputs[i].name) != name || memcmp(outputs[i].name, *at, name) != 0) continue;
    if (outputs[i].size != size) return -1;
    memcpy(outputs[i].bytes, *at + name, size);
  }
  *at += name + size;
  return 0;
}

/* 0, or -1 with a sentence in `why`. */
static inline int laneway_function_call(int fd, const struct laneway_tensor* inputs,
                                        uint32_t input_count, const struct laneway_tensor* outputs,
                                        uint32_t output_count, char* why, size_t why_size) {
  uint32_t size = 0, head[2] = {0, 0};
  int result = -1;
  char* body = NULL;
  snprintf(why, why_size, "the server has ended, or sends what no server does");
  if (laneway_function_request_(fd, inputs, input_count) != 0) return -1;
  if (laneway_function_receive_(fd, &size, sizeof size) != 0 || size < 4) return -1;
  body = (char*)malloc(size);
  if (body == NULL || laneway_function_receive_(fd, body, size) != 0) {
    free(body);
    return -1;
  }
  memcpy(head, body, size < 8 ? size : 8);
  if (head[0] != 0) {
    snprintf(why, why_size, "%.*s", (int)(size - 4), body + 4);
  } else if (size >= 8) {
    const char* at = body + 8;
    result = 0;
    for (uint32_t i = 0; i < head[1] && result == 0; ++i)
      result = laneway_function_output_(&at, body + size, outputs, output_count);
  }
  free(body);
  return result;
}
