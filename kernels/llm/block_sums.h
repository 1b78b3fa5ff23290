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

// All threads get the sum. One warp adds for all: exchanges between lanes cost the software GPU
// more than additions. `shared` has kThreads elements, which no thread may use for anything else
// until the next barrier.
__device__ inline float SumOfBlock(float value, float* shared) {
  shared[ThreadOfBlock()] = value;
  __syncthreads();
  if (threadIdx.y == 0) {
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < kThreads; i += kLanes) sum += shared[i];
    shared[threadIdx.x] = SumOfWarp(sum);
  }
  __syncthreads();
  return shared[0];
}

}  // namespace kernels::llm
