// Ways to launch a kernel, and what is known about one.
#include <cstring>
#include <vector>

#include "check.h"

struct Scale {
  char unused;
  double factor;
  int add;
};

__global__ void Apply(const float* in, float* out, int n, Scale scale) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<float>(in[i] * scale.factor) + scale.add;
}

template <class T>
__global__ void Number(T* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * threads + thread] = static_cast<T>(block * threads + thread);
}

__global__ void Reverse(int* values) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

__global__ void Nothing() {}

namespace {

void StructsByValue() {
  constexpr int kCount = 1000;
  std::vector<float> in(kCount), out(kCount);
  for (int i = 0; i < kCount; ++i) in[i] = static_cast<float>(i);
  float *device_in, *device_out;
  CHECK(cudaMalloc(&device_in, kCount * sizeof(float)));
  CHECK(cudaMalloc(&device_out, kCount * sizeof(float)));
  CHECK(cudaMemcpy(device_in, in.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  Apply<<<(kCount + 127) / 128, 128>>>(device_in, device_out, kCount, Scale{'x', 2.0, 3});
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), device_out, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) EXPECT(out[i] == 2.0f * i + 3);
  CHECK(cudaFree(device_in));
  CHECK(cudaFree(device_out));
}

void ThreeDimensionsAndTemplates() {
  const dim3 grid(2, 3, 4), block(5, 2, 3);
  constexpr int kCount = 24 * 30;
  std::vector<double> out(kCount);
  double* device;
  CHECK(cudaMalloc(&device, kCount * sizeof(double)));
  Number<<<grid, block>>>(device);
  CHECK(cudaMemcpy(out.data(), device, kCount * sizeof(double), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) EXPECT(out[i] == i);
  CHECK(cudaFree(device));
}

void DynamicSharedMemory() {
  constexpr int kCount = 256;
  int values[kCount];
  for (int i = 0; i < kCount; ++i) values[i] = i;
  int* device;
  CHECK(cudaMalloc(&device, sizeof values));
  CHECK(cudaMemcpy(device, values, sizeof values, cudaMemcpyHostToDevice));
  Reverse<<<1, kCount, sizeof values>>>(device);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(kCount);
  config.dynamicSmemBytes = sizeof values;
  CHECK(cudaLaunchKernelEx(&config, Reverse, device));
  Reverse<<<1, kCount, sizeof values>>>(device);
  CHECK(cudaMemcpy(values, device, sizeof values, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) EXPECT(values[i] == kCount - 1 - i);
  CHECK(cudaFree(device));
}

void ByAddressAndByHandle() {
  int* device;
  int values[4] = {1, 2, 3, 4};
  CHECK(cudaMalloc(&device, sizeof values));
  CHECK(cudaMemcpy(device, values, sizeof values, cudaMemcpyHostToDevice));
  void* args[] = {&device};
  const void* const address = reinterpret_cast<const void*>(&Reverse);
  CHECK(cudaLaunchKernel(address, dim3(1), dim3(4), args, sizeof values, nullptr));
  cudaKernel_t handle;
  CHECK(cudaGetKernel(&handle, address));
  CHECK(cudaLaunchKernel(handle, dim3(1), dim3(2), args, sizeof values, nullptr));
  CHECK(cudaMemcpy(values, device, sizeof values, cudaMemcpyDeviceToHost));
  EXPECT(values[0] == 3 && values[1] == 4 && values[2] == 2 && values[3] == 1);
  CHECK(cudaFree(device));
  cudaFunction_t function;
  CHECK(cudaGetFuncBySymbol(&function, address));
  EXPECT(function != nullptr);
  EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(values, 1, 1, args, 0, nullptr));
  EXPECT(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
}

void Attributes() {
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, Reverse));
  EXPECT(attributes.maxThreadsPerBlock >= 256);
  EXPECT(attributes.sharedSizeBytes == 0);
  CHECK(cudaFuncSetAttribute(Reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
  CHECK(cudaFuncGetAttributes(&attributes, Reverse));
  EXPECT(attributes.maxDynamicSharedSizeBytes == 64 * 1024);
  size_t offset, bytes;
  CHECK(cudaFuncGetParamInfo(reinterpret_cast<const void*>(&Apply), 3, &offset, &bytes));
  EXPECT(offset == 24 && bytes == sizeof(Scale));
  const char* name;
  CHECK(cudaFuncGetName(&name, reinterpret_cast<const void*>(&Nothing)));
  EXPECT(std::strstr(name, "Nothing") != nullptr);
}

}  // namespace

int main() {
  Nothing<<<1, 1>>>();  // the first call of all
  CHECK(cudaDeviceSynchronize());
  StructsByValue();
  ThreeDimensionsAndTemplates();
  DynamicSharedMemory();
  ByAddressAndByHandle();
  Attributes();
  std::puts("ok");
}
