// Compiled to LTO-IR: calls a function that it does not define.
extern "C" __device__ int twice(int);
extern "C" __global__ void k(int* to) { to[threadIdx.x] = twice(to[threadIdx.x]); }
