// A kernel for each row of math_functions.inc, for math_test.cc.
#define KERNEL(type, name, call)                                                               \
  extern "C" __global__ void name##_##type(const type* xs, const type* ys, type* out, int n) { \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                                       \
    if (i >= n) return;                                                                        \
    [[maybe_unused]] const type x = xs[i], y = ys[i];                                          \
    out[i] = call;                                                                             \
  }
#define SINGLE(name, call, ...) KERNEL(float, name, call)
#define DOUBLE(name, call, ...) KERNEL(double, name, call)
#include "math_functions.inc"
