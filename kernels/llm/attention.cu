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

// --- attention -----------------------------------------------------------------------------------
// A block of threads does kHeads heads of one row that share their keys, so that each key and value
// is read once for all of them.

// Shared memory in which the threads of a block exchange scores and sums of a segment.
template <int kHeads>
struct Segment {
  float weights[kHeads][kSegmentKeys];  // scores at first
  float parts[kHeads][kThreads];        // sums of values
  float greatest[kHeads];
  float sum[kHeads];  // of the weights
};

// The softmax so far, of all segments before (online softmax): `out` is the sum of values, each
// times exp(score - greatest), and `sum` that of the factors.
struct Running {
  float greatest = -INFINITY;
  float sum = 0;
  float out = 0;

  __device__ void Merge(float segment_greatest, float segment_sum, float segment_out) {
    const float next = fmaxf(greatest, segment_greatest);
    const float before = expf(greatest - next);
    const float now = expf(segment_greatest - next);
    sum = sum * before + segment_sum * now;
    out = out * before + segment_out * now;
    greatest = next;
  }
};

// The heads that a block of threads computes, and the keys that they attend to.
template <typename Kv, int kHeads>
class Attention {
 public:
  using Queries = float[kHeads][kHeadWidthMax];

  __device__ explicit Attention(const PagedAttention& a) : a_(a) {
    const int head = static_cast<int>(blockIdx.y) * kHeads;
    const int row = static_cast<int>(blockIdx.x);
    const Place place = PlaceOf(a.step, row);
    request_ = place.request;
    keys_ = place.position + 1;
    first_head_at_ = (static_cast<int64_t>(row) * a.heads + head) * a.head_width;
    kv_offset_ = static_cast<int64_t>(head / (a.heads / a.kv_heads)) * a.head_width;
  }
  __device__ int keys() const { return keys_; }
  // Among the elements of queries, and of what is computed.
  __device__ int64_t HeadAt(int head) const { return first_head_at_ + head * a_.head_width; }

  // One key of the segment for each thread; beyond the keys minus infinity. A lane reads 16 bytes
  // of its own key at a time.
  __device__ void Scores(const Queries& q, int first, Segment<kHeads>* segment) const {
    const int thread = ThreadOfBlock();
    float sums[kHeads][kHeadWidthStep] = {};
    const bool there = first + thread < keys_;
    // Lanes beyond the keys read the last one, so that the warp's lanes stay together.
    const bool any = first + static_cast<int>(threadIdx.y) * kLanes < keys_;
    const Kv* const key = At(a_.pages.keys, there ? first + thread : keys_ - 1);
    for (int i = 0; any && i < a_.head_width; i += kHeadWidthStep) {
      float elements[kHeadWidthStep];
#pragma unroll
      for (int j = 0; j < kHeadWidthStep; ++j) elements[j] = ToFloat(key[i + j]);
#pragma unroll
      for (int j = 0; j < kHeads * kHeadWidthStep; ++j) {
        float& sum = sums[j / kHeadWidthStep][j % kHeadWidthStep];
        sum =
            fmaf(q[j / kHeadWidthStep][i + j % kHeadWidthStep], elements[j % kHeadWidthStep], sum);
      }
    }
#pragma unroll
    for (int head = 0; head < kHeads; ++head) {
      const float score = (sums[head][0] + sums[head][1]) + (sums[head][2] + sums[head][3]);
      segment->weights[head][thread] = there ? score : -INFINITY;
    }
  }

  // Adds element `element` of the values, each times its weight, of keys [first + begin, last).
  __device__ void Values(int first, int begin, int last, const Segment<kHeads>& segment,
                         int element, float (&out)[kHeads]) const {
    const int64_t stride = static_cast<int64_t>(a_.kv_heads) * a_.head_width;
    for (int key = first + begin; key < last;) {
      const Kv* value = At(a_.pages.values, key) + element;
      const int end = min(last, (key / kBlockTokens + 1) * kBlockTokens);
#pragma unroll 4
      for (; key < end; ++key, value += stride) {
        const float one = ToFloat(*value);
#pragma unroll
        for (int head = 0; head < kHeads; ++head) {
          out[head] = fmaf(segment.weights[head][key - first], one, out[head]);
        }
      }
    }
  }

 private:
  __device__ const Kv* At(const void* pages, int key) const {
    const int64_t slot = SlotOf(a_.step, request_, key);
    return static_cast<const Kv*>(pages) + slot * a_.kv_heads * a_.head_width + kv_offset_;
  }

  const PagedAttention& a_;
  int request_;
  int keys_;
  int64_t first_head_at_;
  int64_t kv_offset_;
};

// One warp adds for all: exchanges between lanes cost the software GPU more than additions.
__device__ float GreatestOf(const float* values) {
  float greatest = -INFINITY;
  for (int i = static_cast<int>(threadIdx.x); i < kSegmentKeys; i += kLanes) {
    greatest = fmaxf(greatest, values[i]);
  }
  return MaxOfWarp(greatest);
}

__device__ float SumOf(const float* values) {
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < kSegmentKeys; i += kLanes) sum += values[i];
  return SumOfWarp(sum);
}

// How a block's warps divide a segment's values: each has 32 elements of some of the keys.
struct Share {
  int element;
  int part;   // of the keys
  int parts;  // that there are
};

__device__ Share ShareOf(int head_width) {
  int chunks = 1;
  while (chunks * kLanes < head_width) chunks *= 2;
  const int warp = static_cast<int>(threadIdx.y);
  return {warp % chunks * kLanes + static_cast<int>(threadIdx.x), warp / chunks, kWarps / chunks};
}

// Makes weights of scores, and sums of values.
template <typename Kv, int kHeads>
__device__ void Weigh(const Attention<Kv, kHeads>& attention, const Share& share, int first,
                      int head_width, Segment<kHeads>* segment) {
  const int thread = ThreadOfBlock();
  const int warp = static_cast<int>(threadIdx.y);
  if (warp < kHeads) segment->greatest[warp] = GreatestOf(segment->weights[warp]);
  __syncthreads();
  for (int head = 0; head < kHeads; ++head) {
    float& weight = segment->weights[head][thread];
    weight = expf(weight - segment->greatest[head]);
  }
  __syncthreads();
  if (warp < kHeads) segment->sum[warp] = SumOf(segment->weights[warp]);
  const int keys_of_part = kSegmentKeys / share.parts;
  const int begin = share.part * keys_of_part;
  float out[kHeads] = {};
  if (share.element < head_width) {
    const int last = min(attention.keys(), first + begin + keys_of_part);
    attention.Values(first, begin, last, *segment, share.element, out);
  }
  for (int head = 0; head < kHeads; ++head) segment->parts[head][thread] = out[head];
  __syncthreads();
}

template <typename Kv, int kHeads>
__device__ void Attend(const PagedAttention& a) {
  static_assert(kSegmentKeys == kThreads && kHeadWidthMax <= kThreads && kHeads <= kWarps);
  __shared__ Segment<kHeads> segment;
  __shared__ float q[kHeads][kHeadWidthMax];
  const Attention<Kv, kHeads> attention(a);
  const int thread = ThreadOfBlock();
  for (int head = 0; head < kHeads && thread < a.head_width; ++head) {
    q[head][thread] = a.q[attention.HeadAt(head) + thread] * a.scale;
  }
  __syncthreads();
  const Share share = ShareOf(a.head_width);
  Running all[kHeads];
  for (int first = 0; first < attention.keys(); first += kSegmentKeys) {
    attention.Scores(q, first, &segment);
    __syncthreads();
    Weigh(attention, share, first, a.head_width, &segment);
    if (share.part > 0) continue;
    for (int head = 0; head < kHeads; ++head) {
      float out = 0;
      for (int part = 0; part < share.parts; ++part) {
        out += segment.parts[head][part * (kThreads / share.parts) + thread];
      }
      all[head].Merge(segment.greatest[head], segment.sum[head], out);
    }
  }
  if (share.part > 0 || share.element >= a.head_width) return;
  for (int head = 0; head < kHeads; ++head) {
    a.out[attention.HeadAt(head) + share.element] = all[head].out / all[head].sum;
  }
}

}  // namespace

extern "C" __global__ void rope_store_float(RopeStore r) { RopeAndStore<float>(r); }
extern "C" __global__ void rope_store_half(RopeStore r) { RopeAndStore<__half>(r); }

extern "C" __global__ void attention_float_1(PagedAttention a) { Attend<float, 1>(a); }
extern "C" __global__ void attention_float_2(PagedAttention a) { Attend<float, 2>(a); }
extern "C" __global__ void attention_float_3(PagedAttention a) { Attend<float, 3>(a); }
extern "C" __global__ void attention_float_4(PagedAttention a) { Attend<float, 4>(a); }
extern "C" __global__ void attention_half_1(PagedAttention a) { Attend<__half, 1>(a); }
extern "C" __global__ void attention_half_2(PagedAttention a) { Attend<__half, 2>(a); }
extern "C" __global__ void attention_half_3(PagedAttention a) { Attend<__half, 3>(a); }
extern "C" __global__ void attention_half_4(PagedAttention a) { Attend<__half, 4>(a); }

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
