// Checked calls for the small programs: a failed call names itself on standard error and ends the
// program with code 1.
#pragma once

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static inline void CheckDriver(CUresult result, const char* call, int line) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "line %d: %s: error %d\n", line, call, (int)result);
  exit(1);
}
#define CHECK(call) CheckDriver((call), #call, __LINE__)

#ifdef __CUDACC__
static inline void CheckRuntime(cudaError_t status, const char* call, int line) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "line %d: %s: %s (%d)\n", line, call, cudaGetErrorString(status), (int)status);
  exit(1);
}
#define CUDA_CHECK(call) CheckRuntime((call), #call, __LINE__)
#endif
