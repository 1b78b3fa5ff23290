// Declarations that both files of the program with separable compilation use.
#pragma once

#include <cuda_runtime.h>

constexpr int kThreads = 64;

typedef float (*Function)(float);

extern __device__ int counter;
extern __device__ Function functions[2];
extern __constant__ float scale[4];

__device__ float Square(float x);

// One copy stays of the variable and of the function that both files define.
template <int kStep>
__device__ int shared_steps = kStep;
template <int kStep>
__device__ int Advance() {
  return atomicAdd(&shared_steps<kStep>, kStep);
}

void LaunchParts(float* out);
int ReadParts();
