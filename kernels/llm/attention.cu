// Kernels that know the pages of keys and values.
#include <cuda_fp16.h>

#include "kernels/llm/arguments.h"
#include "kernels/llm/block_sums.h"
#include "kernels/llm/step_place.h"

namespace kernels::llm {
namespace {

__device__ float ToFloat(float value) { return value; }
__device__ float ToFloat(__half value) { return __half2float(value); }
__device__ void Store(float value, float* to) { *to = value; }
__device__ void Store(float value, __half* to) { *to = __float2half_rn(value); }

// One head of one row: queries, then keys, then values.
class Head {
 public:
  __device__ Head(const RopeStore& r, int row, int head) : width_(r.head_width) {
    const int all = r.heads + 2 * r.kv_heads;
    const int64_t offset = static_cast<int64_t>(head) * width_;
    in_ = r.qkv + static_cast<int64_t>(row) * all * width_ + offset;
    bias_ = r.bias == nullptr ? nullptr : r.bias + offset;
  }
  // Multiplies by `weight` over the root of the mean square from now on.
  __device__ void Normalise(const float* weight, float epsilon) {
    float square = 0;
    for (int i = static_cast<int>(threadIdx.x); i < width_; i += kLanes) square += At(i) * At(i);
    factor_ = 1.0f / sqrtf(SumOfWarp(square) / static_cast<float>(width_) + epsilon);
    weight_ = weight;
  }
  __device__ float At(int i) const {
    const float value = bias_ == nullptr ? in_[i] : in_[i] + bias_[i];
    return weight_ == nullptr ? value : value * factor_ * weight_[i];
  }

 private:
  int width_;
  const float* in_;
  const float* bias_;
  const float* weight_ = nullptr;
  float factor_ = 1;
};

template <typename T>
__device__ void Turn(const RopeStore& r, const Head& head, int position, T* to) {
  const int half = r.rotated / 2;
  const float* const turns = r.turns + static_cast<int64_t>(position) * r.rotated;
  for (int i = static_cast<int>(threadIdx.x); i < half; i += kLanes) {
    const int first = r.pairs == RopePairs::kNeighbours ? 2 * i : i;
    const int second = r.pairs == RopePairs::kNeighbours ? first + 1 : i + half;
    const float a = head.At(first);
    const float b = head.At(second);
    const float cosine = turns[2 * i];
    const float sine = turns[2 * i + 1];
    Store(a * cosine - b * sine, to + first);
    Store(a * sine + b * cosine, to + second);
  }
  for (int i = r.rotated + static_cast<int>(threadIdx.x); i < r.head_width; i += kLanes) {
    Store(head.At(i), to + i);
  }
}

// A warp does one head of one row.
template <typename Kv>
__device__ void RopeAndStore(const RopeStore& r) {
  const int row = static_cast<int>(blockIdx.x);
  const int number = static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.y);
  if (number >= r.heads + 2 * r.kv_heads) return;
  const Place place = PlaceOf(r.step, row);
  Head head(r, row, number);
  if (number < r.heads) {
    if (r.q_norm != nullptr) head.Normalise(r.q_norm, r.epsilon);
    const int64_t at = static_cast<int64_t>(row) * r.heads + number;
    Turn(r, head, place.position, r.q + at * r.head_width);
    return;
  }
  const bool is_key = number < r.heads + r.kv_heads;
  const int kv_head = number - r.heads - (is_key ? 0 : r.kv_heads);
  const int64_t at = SlotOf(r.step, place.request, place.position) * r.kv_heads + kv_head;
  Kv* const to = static_cast<Kv*>(is_key ? r.pages.keys : r.pages.values) + at * r.head_width;
  if (is_key) {
    if (r.k_norm != nullptr) head.Normalise(r.k_norm, r.epsilon);
    Turn(r, head, place.position, to);
    return;
  }
  for (int i = static_cast<int>(threadIdx.x); i < r.head_width; i += kLanes) {
    Store(head.At(i), to + i);
  }
}

// --- attention: a block of threads does one head of one row
// ---------------------------------------

constexpr int kKeysAtOnce = 8;

// 32 keys and their values, which lie in two blocks. A lane has elements lane, lane + 32, ... of a
// head: neighbouring lanes read neighbouring elements, and nothing is read twice.
template <typename Kv, int kChunks>
class Tile {
 public:
  // REQUIRES: count > 0, of the keys from position `first` on.
  __device__ Tile(const PagedAttention& a, int request, int kv_head, int first, int count)
      : head_width_(a.head_width), count_(min(count, kLanes)) {
    stride_ = static_cast<int64_t>(a.kv_heads) * head_width_;
    const int second = count_ > kBlockTokens ? first + kBlockTokens : first;
    const int64_t within = static_cast<int64_t>(kv_head) * head_width_;
    offset_[0] = SlotOf(a.step, request, first) * stride_ + within;
    offset_[1] = SlotOf(a.step, request, second) * stride_ + within;
    keys_ = static_cast<const Kv*>(a.pages.keys);
    values_ = static_cast<const Kv*>(a.pages.values);
  }

  // Lane i gets q times key i; beyond the keys minus infinity. Each lane multiplies its elements of
  // a few keys, then lanes exchange halves of what they have until each has one key's sum.
  __device__ float Scores(const float (&q)[kChunks]) const {
    const int lane = static_cast<int>(threadIdx.x);
    float score = -INFINITY;
#pragma unroll 1
    for (int first = 0; first < count_; first += kKeysAtOnce) {
      float sums[kKeysAtOnce];
#pragma unroll
      for (int key = 0; key < kKeysAtOnce; ++key) sums[key] = Product(q, first + key);
#pragma unroll
      for (int width = kKeysAtOnce / 2; width > 0; width /= 2) {
        const bool upper = (lane & width) != 0;
#pragma unroll
        for (int i = 0; i < width; ++i) {
          const float given = upper ? sums[i] : sums[i + width];
          const float kept = upper ? sums[i + width] : sums[i];
          sums[i] = kept + __shfl_xor_sync(kAllLanes, given, width);
        }
      }
#pragma unroll
      for (int distance = kKeysAtOnce; distance < kLanes; distance *= 2) {
        sums[0] += __shfl_xor_sync(kAllLanes, sums[0], distance);
      }
      if (lane / kKeysAtOnce * kKeysAtOnce == first && lane < count_) score = sums[0];
    }
    return score;
  }

  // The values, each times the weight that lane i has for value i.
  __device__ void AddValues(float weight, float (&out)[kChunks]) const {
#pragma unroll 4
    for (int key = 0; key < kLanes; ++key) {
      const float share = __shfl_sync(kAllLanes, weight, key);
      const Kv* const at = values_ + OffsetOf(key);
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        const int i = chunk * kLanes + static_cast<int>(threadIdx.x);
        if (i < head_width_) out[chunk] = fmaf(share, ToFloat(at[i]), out[chunk]);
      }
    }
  }

 private:
  // The sum of this lane's elements of q times the key's.
  __device__ float Product(const float (&q)[kChunks], int key) const {
    const Kv* const at = keys_ + OffsetOf(key);
    float sum = 0;
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const int i = chunk * kLanes + static_cast<int>(threadIdx.x);
      if (i < head_width_) sum = fmaf(q[chunk], ToFloat(at[i]), sum);
    }
    return sum;
  }

  // Beyond the keys the last one stands for what is not there, with a weight of 0.
  __device__ int64_t OffsetOf(int key) const {
    const int there = min(key, count_ - 1);
    return (there < kBlockTokens ? offset_[0] : offset_[1]) + there % kBlockTokens * stride_;
  }

  const Kv* keys_;
  const Kv* values_;
  int head_width_;
  int count_;
  int64_t stride_;
  int64_t offset_[2];
};

// What the warps of a block tell each other of a segment.
template <int kChunks>
struct Segment {
  float greatest[kWarps];
  float sums[kWarps];
  float parts[kWarps][kChunks * kLanes];
};

// The softmax so far, of all segments before (online softmax): `out` is the sum of values, each
// times exp(score - greatest), and `sum` that of the factors.
struct Running {
  float greatest = -INFINITY;
  float sum = 0;
  float out = 0;
};

template <int kChunks>
__device__ void Merge(const Segment<kChunks>& segment, float greatest, int element, Running* all) {
  float sum = 0;
  float out = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    sum += segment.sums[warp];
    out += segment.parts[warp][element];
  }
  const float next = fmaxf(all->greatest, greatest);
  const float before = expf(all->greatest - next);
  const float now = expf(greatest - next);
  all->sum = all->sum * before + sum * now;
  all->out = all->out * before + out * now;
  all->greatest = next;
}

template <typename Kv, int kChunks>
__device__ void Attend(const PagedAttention& a) {
  static_assert(kSegmentKeys == kWarps * kLanes && kChunks <= kWarps);
  __shared__ Segment<kChunks> segment;
  const int row = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  const int kv_head = head / (a.heads / a.kv_heads);
  const Place place = PlaceOf(a.step, row);
  const int64_t at = (static_cast<int64_t>(row) * a.heads + head) * a.head_width;
  float q[kChunks];
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const int i = chunk * kLanes + lane;
    q[chunk] = i < a.head_width ? a.q[at + i] * a.scale : 0;
  }
  const int keys = place.position + 1;
  Running all;
  for (int first = 0; first < keys; first += kSegmentKeys) {
    const int mine = first + warp * kLanes;
    const bool any = mine < keys;  // the same for all lanes of the warp
    const Tile<Kv, kChunks> tile(a, place.request, kv_head, any ? mine : first, keys - mine);
    const float score = any ? tile.Scores(q) : -INFINITY;
    const float greatest_of_tile = MaxOfWarp(score);
    if (lane == 0) segment.greatest[warp] = greatest_of_tile;
    __syncthreads();
    float greatest = segment.greatest[0];
    for (int other = 1; other < kWarps; ++other)
      greatest = fmaxf(greatest, segment.greatest[other]);
    const float weight = expf(score - greatest);
    const float sum = SumOfWarp(weight);
    float part[kChunks] = {};
    if (any) tile.AddValues(weight, part);
    if (lane == 0) segment.sums[warp] = sum;
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      segment.parts[warp][chunk * kLanes + lane] = part[chunk];
    }
    __syncthreads();
    if (warp < kChunks) Merge(segment, greatest, warp * kLanes + lane, &all);
  }
  const int element = warp * kLanes + lane;
  if (element < a.head_width) a.out[at + element] = all.out / all.sum;
}

}  // namespace

extern "C" __global__ void rope_store_float(RopeStore r) { RopeAndStore<float>(r); }
extern "C" __global__ void rope_store_half(RopeStore r) { RopeAndStore<__half>(r); }

extern "C" __global__ void attention_float_1(PagedAttention a) { Attend<float, 1>(a); }
extern "C" __global__ void attention_float_2(PagedAttention a) { Attend<float, 2>(a); }
extern "C" __global__ void attention_float_4(PagedAttention a) { Attend<float, 4>(a); }
extern "C" __global__ void attention_float_8(PagedAttention a) { Attend<float, 8>(a); }
extern "C" __global__ void attention_half_1(PagedAttention a) { Attend<__half, 1>(a); }
extern "C" __global__ void attention_half_2(PagedAttention a) { Attend<__half, 2>(a); }
extern "C" __global__ void attention_half_4(PagedAttention a) { Attend<__half, 4>(a); }
extern "C" __global__ void attention_half_8(PagedAttention a) { Attend<__half, 8>(a); }

// A thread copies the same bytes of each block, so that copies follow each other.
extern "C" __global__ void copy_blocks(CopyBlocks c) {
  const int part = static_cast<int>(blockIdx.x) * kThreads + ThreadOfBlock();
  const int parts = c.block_bytes / static_cast<int>(sizeof(uint4));
  if (part >= parts) return;
  uint4* const pool = reinterpret_cast<uint4*>(static_cast<char*>(c.pool) +
                                               static_cast<int64_t>(blockIdx.y) * c.pool_bytes);
  for (int copy = 0; copy < c.count; ++copy) {
    const int64_t from = static_cast<int64_t>(c.copies[2 * copy]) * parts + part;
    const int64_t to = static_cast<int64_t>(c.copies[2 * copy + 1]) * parts + part;
    pool[to] = pool[from];
  }
}

}  // namespace kernels::llm
