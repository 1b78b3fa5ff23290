// Checks for programs that test themselves: the first one that fails says where and ends the
// program.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

// The call must return `wanted`.
#define EXPECT_ERROR(wanted, call)                                               \
  do {                                                                           \
    const cudaError_t got = (call);                                              \
    if (got != (wanted)) {                                                       \
      std::fprintf(stderr, "%s:%d: %s returned %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorName(got));                                       \
      std::exit(1);                                                              \
    }                                                                            \
  } while (false)

#define CHECK(call) EXPECT_ERROR(cudaSuccess, call)

#define EXPECT(condition)                                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                \
    }                                                                              \
  } while (false)
