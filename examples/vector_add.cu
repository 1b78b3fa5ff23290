// c = a + b with the runtime interface: the first program to try.   vector_add [elements]
#include "common.h"

__global__ void VectorAdd(const float* a, const float* b, float* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) c[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
  const int count = IntArgument(argc, argv, 1, 1 << 20);
  if (count <= 0) {
    std::fprintf(stderr, "usage: vector_add [elements > 0]\n");
    return 2;
  }
  std::vector<float> a(count), b(count);
  for (int i = 0; i < count; ++i) {
    a[i] = 0.5f * static_cast<float>(i % 1000);
    b[i] = 0.25f * static_cast<float>(i % 777);
  }
  DeviceBuffer<float> device_a(a), device_b(b), device_c(count);

  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  CUDA_CHECK(cudaEventRecord(begin));
  VectorAdd<<<(count + 255) / 256, 256>>>(device_a.get(), device_b.get(), device_c.get(), count);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaEventRecord(end));
  CUDA_CHECK(cudaEventSynchronize(end));

  const std::vector<float> c = device_c.Get();
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += c[i] != a[i] + b[i];
  std::printf("vector_add: %d elements, %d wrong, fingerprint %016llx\n", count, wrong,
              static_cast<unsigned long long>(Fingerprint(c)));
  float elapsed_ms = 0;
  CUDA_CHECK(cudaEventElapsedTime(&elapsed_ms, begin, end));
  std::printf("time: kernel %.3f ms\n", elapsed_ms);
  CUDA_CHECK(cudaEventDestroy(begin));
  CUDA_CHECK(cudaEventDestroy(end));
  return wrong == 0 ? 0 : 1;
}
