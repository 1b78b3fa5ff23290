// A kernel for each row of math_functions.inc, for math_test.cc.
#include <cuda_fp16.h>

__device__ float2 SinCosPi(float x) {
  float2 both;
  sincospif(x, &both.x, &both.y);
  return both;
}
__device__ double2 SinCosPi(double x) {
  double2 both;
  sincospi(x, &both.x, &both.y);
  return both;
}

#define KERNEL(type, name, call)                                                               \
  extern "C" __global__ void name##_##type(const type* xs, const type* ys, type* out, int n) { \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                                       \
    if (i >= n) return;                                                                        \
    [[maybe_unused]] const type x = xs[i], y = ys[i];                                          \
    out[i] = call;                                                                             \
  }
#define SINGLE(name, call, ...) KERNEL(float, name, call)
#define DOUBLE(name, call, ...) KERNEL(double, name, call)
#define SINGLE_NEAR(name, call, ...) KERNEL(float, name, call)
#define DOUBLE_NEAR(name, call, ...) KERNEL(double, name, call)
#define HALF(name, call, ...) KERNEL(__half, name, call)
#include "math_functions.inc"
