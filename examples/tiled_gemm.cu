// C = A B by 16 x 16 tiles in shared memory, and the same with dynamic shared memory.   tiled_gemm
// [size]
#include <cmath>

#include "common.h"

constexpr int kTile = 16;

__device__ float TileProduct(const float* a, const float* b, int size, float* tile_a,
                             float* tile_b) {
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  const int slot = threadIdx.y * kTile + threadIdx.x;
  float sum = 0;
  for (int start = 0; start < size; start += kTile) {
    const int inner_a = start + threadIdx.x, inner_b = start + threadIdx.y;
    tile_a[slot] = row < size && inner_a < size ? a[row * size + inner_a] : 0.0f;
    tile_b[slot] = inner_b < size && column < size ? b[inner_b * size + column] : 0.0f;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) {
      sum = fmaf(tile_a[threadIdx.y * kTile + k], tile_b[k * kTile + threadIdx.x], sum);
    }
    __syncthreads();
  }
  return sum;
}

__global__ void GemmStatic(const float* a, const float* b, float* c, int size) {
  __shared__ float tile_a[kTile * kTile], tile_b[kTile * kTile];
  const float sum = TileProduct(a, b, size, tile_a, tile_b);
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  if (row < size && column < size) c[row * size + column] = sum;
}

__global__ void GemmDynamic(const float* a, const float* b, float* c, int size) {
  extern __shared__ float tiles[];
  const float sum = TileProduct(a, b, size, tiles, tiles + kTile * kTile);
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  if (row < size && column < size) c[row * size + column] = sum;
}

// Adds in the order of the kernel, so every bit must agree.
static int CountWrong(const std::vector<float>& a, const std::vector<float>& b,
                      const std::vector<float>& c, int size) {
  int wrong = 0;
  for (int row = 0; row < size; row += 7) {
    for (int column = 0; column < size; ++column) {
      float sum = 0;
      for (int k = 0; k < size; ++k) sum = std::fma(a[row * size + k], b[k * size + column], sum);
      wrong += sum != c[row * size + column];
    }
  }
  return wrong;
}

int main(int argc, char** argv) {
  const int size = IntArgument(argc, argv, 1, 250);  // not a multiple of the tile
  if (size <= 0 || size > 8192) {
    std::fprintf(stderr, "usage: tiled_gemm [size, 1 to 8192]\n");
    return 2;
  }
  Random random(11);
  std::vector<float> a(size * size), b(size * size);
  for (float& value : a) value = random.Uniform() - 0.5f;
  for (float& value : b) value = random.Uniform() - 0.5f;
  DeviceBuffer<float> device_a(a), device_b(b), device_c(a.size()), device_d(a.size());

  const dim3 threads(kTile, kTile), blocks((size + kTile - 1) / kTile, (size + kTile - 1) / kTile);
  const double begin_ms = NowMs();
  GemmStatic<<<blocks, threads>>>(device_a.get(), device_b.get(), device_c.get(), size);
  GemmDynamic<<<blocks, threads, 2 * kTile * kTile * sizeof(float)>>>(
      device_a.get(), device_b.get(), device_d.get(), size);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("time: two products %.3f ms\n", NowMs() - begin_ms);

  const std::vector<float> c = device_c.Get(), d = device_d.Get();
  const int wrong = CountWrong(a, b, c, size) + (c == d ? 0 : 1);
  std::printf("tiled_gemm: %d x %d, %d wrong, fingerprint %016llx\n", size, size, wrong,
              static_cast<unsigned long long>(Fingerprint(c)));
  return wrong == 0 ? 0 : 1;
}
