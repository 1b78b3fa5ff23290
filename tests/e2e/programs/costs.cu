// What certain features cost, for scripts/bench programs:
//   costs managed|texture|lock|malloc BATCHES
// computes so many batches, tells the time that they took, and waits for a line of input before the
// next stretch, until there is none. Exit code 3: the device has no such feature.
#include <stdlib.h>
#include <string.h>

#include <chrono>

#include "check.h"

namespace {

constexpr int kAbsent = 3;
constexpr int kCount = 1 << 14;
constexpr int kSide = 64;

__global__ void AddOne(int* values) { values[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

__global__ void Fetch(cudaTextureObject_t texture, float* out) {
  const int x = threadIdx.x, y = blockIdx.x;
  float sum = 0;
  for (int i = 0; i < 16; ++i)
    sum += tex2D<float>(texture, x + 0.5f + i * 0.25f, y + 0.5f - i * 0.25f);
  out[y * kSide + x] = sum;
}

// Every thread takes the lock once.
__global__ void Lock(int* lock, volatile int* counter) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *counter += 1;
  __threadfence();
  atomicExch(lock, 0);
}

__global__ void Allocate(int* out) {
  int* const own = static_cast<int*>(malloc(4 * sizeof(int)));
  if (own == nullptr) return;
  for (int i = 0; i < 4; ++i) own[i] = i * static_cast<int>(threadIdx.x);
  atomicAdd(out, own[1] + own[2] + own[3]);
  free(own);
}

void NeedsFeature(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  exit(kAbsent);
}

// The host reads and writes a value of each page after a kernel.
void Managed() {
  static int* values = nullptr;
  if (values == nullptr) {
    NeedsFeature(cudaMallocManaged(&values, kCount * sizeof(int)), "managed memory");
    memset(values, 0, kCount * sizeof(int));
  }
  AddOne<<<kCount / 256, 256>>>(values);
  NeedsFeature(cudaDeviceSynchronize(), "managed memory");
  for (int i = 0; i < kCount; i += 1024) values[i] += 1;
}

void Texture() {
  static cudaTextureObject_t texture = 0;
  static float* out = nullptr;
  if (out == nullptr) {
    cudaArray_t array;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    NeedsFeature(cudaMallocArray(&array, &format, kSide, kSide), "arrays");
    static float host[kSide * kSide];
    for (int i = 0; i < kSide * kSide; ++i) host[i] = static_cast<float>(i % 17);
    NeedsFeature(cudaMemcpy2DToArray(array, 0, 0, host, kSide * sizeof(float),
                                     kSide * sizeof(float), kSide, cudaMemcpyHostToDevice),
                 "arrays");
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc description = {};
    description.filterMode = cudaFilterModeLinear;
    NeedsFeature(cudaCreateTextureObject(&texture, &resource, &description, nullptr), "textures");
    CUDA_CHECK(cudaMalloc(&out, kSide * kSide * sizeof(float)));
  }
  Fetch<<<kSide, kSide>>>(texture, out);
  NeedsFeature(cudaDeviceSynchronize(), "textures");
}

void Locks() {
  static int* words = nullptr;
  if (words == nullptr) {
    CUDA_CHECK(cudaMalloc(&words, 2 * sizeof(int)));
    CUDA_CHECK(cudaMemset(words, 0, 2 * sizeof(int)));
  }
  Lock<<<4, 64>>>(words, words + 1);
  CUDA_CHECK(cudaDeviceSynchronize());
}

void Malloc() {
  static int* sum = nullptr;
  if (sum == nullptr) CUDA_CHECK(cudaMalloc(&sum, sizeof(int)));
  Allocate<<<4, 64>>>(sum);
  NeedsFeature(cudaGetLastError(), "malloc on the device");
  NeedsFeature(cudaDeviceSynchronize(), "malloc on the device");
}

}  // namespace

int main(int argc, char** argv) {
  struct Feature {
    const char* name;
    void (*batch)();
  };
  constexpr Feature kFeatures[] = {
      {"managed", &Managed}, {"texture", &Texture}, {"lock", &Locks}, {"malloc", &Malloc}};
  for (const Feature& feature : kFeatures) {
    if (argc != 3 || strcmp(argv[1], feature.name) != 0) continue;
    const int batches = static_cast<int>(strtol(argv[2], nullptr, 10));
    char line[16];
    do {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < batches; ++i) feature.batch();
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      printf("time: %d batches %.3f ms\n", batches, took.count());
      fflush(stdout);
    } while (fgets(line, sizeof line, stdin) != nullptr);
    return 0;
  }
  fprintf(stderr, "costs managed|texture|lock|malloc BATCHES\n");
  return 2;
}
