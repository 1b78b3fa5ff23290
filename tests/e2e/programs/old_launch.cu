// The launch interface from before CUDA 4, the driver's log, and names of the driver that are there
// and refuse.
#include <dlfcn.h>

#include "check.h"

__global__ void Scale(float* values, int count, float factor, double shift) {
  extern __shared__ float copies[];
  const int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
  copies[threadIdx.x] = i < count ? values[i] : 0;
  __syncthreads();
  if (i < count) values[i] = copies[threadIdx.x] * factor + static_cast<float>(shift);
}

int CallByName(const char* name) {
  const auto call = reinterpret_cast<CUresult (*)()>(dlsym(RTLD_DEFAULT, name));
  return call == nullptr ? -1 : call();
}

int main() {
  constexpr int kCount = 1000;
  float* values;
  CUDA_CHECK(cudaMalloc(&values, kCount * sizeof(float)));
  float host[kCount];
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>(i);
  CUDA_CHECK(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
  cudaFunction_t kernel;
  CUDA_CHECK(cudaGetFuncBySymbol(&kernel, reinterpret_cast<const void*>(&Scale)));
  const CUfunction function = kernel;
  CHECK(cuFuncSetBlockShape(function, 64, 1, 1));
  CHECK(cuFuncSetSharedSize(function, 64 * sizeof(float)));
  CUdeviceptr address = reinterpret_cast<CUdeviceptr>(values);
  CHECK(cuParamSetv(function, 0, &address, sizeof address));
  CHECK(cuParamSeti(function, 8, kCount));
  CHECK(cuParamSetf(function, 12, 2.5f));
  double shift = 0.25;
  CHECK(cuParamSetv(function, 16, &shift, sizeof shift));
  CHECK(cuParamSetSize(function, 24));
  CHECK(cuLaunchGrid(function, 4, 4));
  CHECK(cuParamSetf(function, 12, 0.5f));
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  CHECK(cuLaunchGridAsync(function, 16, 1, stream));
  CHECK(cuFuncSetBlockShape(function, 10, 1, 1));
  CHECK(cuLaunch(function));
  CUDA_CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
  double sum = 0;
  for (const float value : host) sum += value;
  printf("values: %.3f %.3f %.3f\n", host[3], host[999], sum);
  printf("refused: %d %d %d %d %d\n", cuFuncSetBlockShape(function, 0, 1, 1),
         cuParamSetv(function, 4090, &shift, 8), cuParamSetSize(function, 5000),
         cuLaunchGrid(function, 0, 1), cuFuncSetBlockShape(function, 2000, 1, 1));
  printf("a block of 2000: %d\n", cuLaunch(function));

  CUcontext context, again;
  CHECK(cuCtxCreate(&context, nullptr, 0, 0));
  CHECK(cuCtxDetach(context));
  printf("detached: %d\n", cuCtxSetCurrent(context));
  CHECK(cuCtxGetCurrent(&again));

  CUlogsCallbackHandle logs;
  CHECK(cuLogsRegisterCallback([](void*, CUlogLevel, char*, size_t) {}, nullptr, &logs));
  CHECK(cuLogsUnregisterCallback(logs));
  printf("no callback: %d\n", cuLogsRegisterCallback(nullptr, nullptr, &logs));
  printf("not there: %d %d\n", CallByName("cuGLInit"), CallByName("cuGraphGetId"));
  return 0;
}
