// Misuse gets the documented error at the call itself, and the session goes on working.
#include "check.h"

__global__ void Nothing() {}
__global__ void Big(float* out) {
  __shared__ float values[1024];
  values[threadIdx.x] = 1;
  out[threadIdx.x] = values[threadIdx.x];
}

static void Launch(const char* what, dim3 blocks, dim3 threads, size_t shared_bytes) {
  Nothing<<<blocks, threads, shared_bytes>>>();
  const cudaError_t error = cudaGetLastError();
  printf("%s: %d %s\n", what, error, cudaGetErrorName(error));
}

int main() {
  void* address = nullptr;
  char host[16];
  Launch("plain", 1, 1, 0);
  Launch("no blocks", 0, 1, 0);
  Launch("no threads", 1, 0, 0);
  Launch("too many threads", 1, 2048, 0);
  Launch("too deep", 1, dim3(1, 1, 128), 0);
  Launch("too many rows of blocks", dim3(1, 70000), 1, 0);
  Launch("too much shared memory", 1, 1, 1 << 20);
  printf("absurd allocation: %d\n", cudaMalloc(&address, 1ull << 50));
  printf("clear: %d\n", cudaGetLastError());
  printf("null copy: %d\n", cudaMemcpy(nullptr, host, 16, cudaMemcpyHostToDevice));
  printf("bad kind: %d\n", cudaMemcpy(host, host, 16, static_cast<cudaMemcpyKind>(77)));
  printf("bad device: %d\n", cudaSetDevice(99));
  printf("clear: %d\n", cudaGetLastError());
  printf("driver: free of nothing %d, unknown attribute %d\n", cuMemFree(0x1234),
         cuDeviceGetAttribute(reinterpret_cast<int*>(host), static_cast<CUdevice_attribute>(100000),
                              0));
  const char* text = nullptr;
  printf("driver: unknown error %d\n", cuGetErrorName(static_cast<CUresult>(123456), &text));
  CUmodule module;
  CUfunction function;
  printf("driver: not PTX %d\n", cuModuleLoadData(&module, "this is not PTX"));
  CHECK(cuModuleLoadData(
      &module, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry f() { ret; }\n"));
  printf("driver: no such function %d\n", cuModuleGetFunction(&function, module, "g"));
  CHECK(cuModuleGetFunction(&function, module, "f"));
  CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CHECK(cuModuleUnload(module));
  float* out;
  CUDA_CHECK(cudaMalloc(&out, 4096));
  Big<<<1, 1024>>>(out);
  printf("still working: %d\n", cudaDeviceSynchronize());
  CUDA_CHECK(cudaFree(out));
  return 0;
}
