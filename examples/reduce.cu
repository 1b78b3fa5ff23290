// Three reductions: a float sum by warp shuffles and shared memory, an integer sum and maximum by
// global atomics, and a histogram by atomics in shared memory.
#include "common.h"

constexpr int kThreads = 256;
constexpr int kBlocks = 64;
constexpr int kBins = 64;

__device__ float WarpSum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

__device__ float BlockSum(float value) {
  __shared__ float partial[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = WarpSum(value);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = threadIdx.x < kThreads / 32 ? partial[lane] : 0.0f;
  return warp == 0 ? WarpSum(value) : 0.0f;
}

// One partial sum per block; a second launch with one block adds the partial sums, so the order is
// fixed.
__global__ void SumFloats(const float* values, int count, float* sums) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    sum += values[i];
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void SumIntegers(const int* values, int count, unsigned long long* sum, int* maximum) {
  unsigned long long mine = 0;
  int largest = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    mine += values[i];
    largest = max(largest, values[i]);
  }
  atomicAdd(sum, mine);
  atomicMax(maximum, largest);
}

__global__ void Histogram(const int* values, int count, unsigned* bins) {
  __shared__ unsigned local[kBins];
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[values[i] % kBins], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

int main() {
  constexpr int kCount = 1 << 19;
  Random random(7);
  std::vector<float> floats(kCount);
  std::vector<int> integers(kCount);
  double float_sum = 0;
  unsigned long long integer_sum = 0;
  int largest = 0;
  std::vector<unsigned> bins(kBins, 0);
  for (int i = 0; i < kCount; ++i) {
    floats[i] = random.Uniform();
    integers[i] = static_cast<int>(random.Next() >> 8);
    float_sum += floats[i];
    integer_sum += integers[i];
    largest = integers[i] > largest ? integers[i] : largest;
    ++bins[integers[i] % kBins];
  }

  DeviceBuffer<float> device_floats(floats), partial(kBlocks), total(1);
  SumFloats<<<kBlocks, kThreads>>>(device_floats.get(), kCount, partial.get());
  SumFloats<<<1, kThreads>>>(partial.get(), kBlocks, total.get());
  CUDA_CHECK(cudaGetLastError());
  const float sum = total.Get()[0];

  DeviceBuffer<int> device_integers(integers), maximum(std::vector<int>(1, 0));
  DeviceBuffer<unsigned long long> device_sum(std::vector<unsigned long long>(1, 0));
  DeviceBuffer<unsigned> device_bins(std::vector<unsigned>(kBins, 0));
  SumIntegers<<<kBlocks, kThreads>>>(device_integers.get(), kCount, device_sum.get(),
                                     maximum.get());
  Histogram<<<kBlocks, kThreads>>>(device_integers.get(), kCount, device_bins.get());
  CUDA_CHECK(cudaGetLastError());

  const double error = (sum - float_sum) / float_sum;
  const bool floats_agree = error < 1e-5 && error > -1e-5;
  const bool integers_agree = device_sum.Get()[0] == integer_sum && maximum.Get()[0] == largest;
  const bool bins_agree = device_bins.Get() == bins;
  std::printf("reduce: float sum %.9g %s\n", sum, floats_agree ? "ok" : "WRONG");
  std::printf("reduce: integer sum %llu, maximum %d %s\n", device_sum.Get()[0], maximum.Get()[0],
              integers_agree ? "ok" : "WRONG");
  std::printf("reduce: histogram %016llx %s\n",
              static_cast<unsigned long long>(Fingerprint(device_bins.Get())),
              bins_agree ? "ok" : "WRONG");
  return floats_agree && integers_agree && bins_agree ? 0 : 1;
}
