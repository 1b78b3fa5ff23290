// Sums of a block of the device: for .cu files alone.
//
// The block is (32, kWarps): threadIdx.x is the lane. Elements are added in an order that follows
// from the block's shape, so the same elements give the same bits.
#pragma once

namespace kernels::llm {

constexpr int kLanes = 32;
constexpr int kWarps = 8;
constexpr int kThreads = kLanes * kWarps;
constexpr unsigned kAllLanes = 0xffffffffu;

__device__ inline int ThreadOfBlock() {
  return static_cast<int>(threadIdx.y) * kLanes + static_cast<int>(threadIdx.x);
}

__device__ inline float SumOfWarp(float value) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

__device__ inline float MaxOfWarp(float value) {
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

// All threads get the sum. `shared` has kWarps elements, which no thread may use for anything else
// until the next barrier.
__device__ inline float SumOfBlock(float value, float* shared) {
  const float sum = SumOfWarp(value);
  if (threadIdx.x == 0) shared[threadIdx.y] = sum;
  __syncthreads();
  float total = shared[0];
  for (int warp = 1; warp < kWarps; ++warp) total += shared[warp];
  return total;
}

}  // namespace kernels::llm
