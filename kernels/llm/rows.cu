// Kernels that take a step's rows as they come, one block of threads a row. The embedding knows
// positions, too.
#include "kernels/llm/arguments.h"
#include "kernels/llm/block_sums.h"
#include "kernels/llm/step_place.h"

namespace kernels::llm {
namespace {

__device__ int64_t RowOffset(int32_t width) { return static_cast<int64_t>(blockIdx.x) * width; }

// Adds what the part of the layer before has computed to the row of the residual stream. Returns
// the sum of this thread's elements, or of their squares.
__device__ float AddToStream(const Norm& n, float* x) {
  const float* const added = n.added == nullptr ? nullptr : n.added + RowOffset(n.width);
  float sum = 0;
  for (int i = ThreadOfBlock(); i < n.width; i += kThreads) {
    float value = x[i];
    if (added != nullptr) {
      value += n.added_bias == nullptr ? added[i] : added[i] + n.added_bias[i];
      x[i] = value;
    }
    sum += n.kind == NormKind::kRms ? value * value : value;
  }
  return sum;
}

}  // namespace

extern "C" __global__ void embed(Embed e) {
  int32_t id = e.ids[blockIdx.x];
  if (id < 0) id = e.drawn[-1 - id];
  const float* const token = e.tokens + static_cast<int64_t>(id) * e.width;
  const float* position = nullptr;
  if (e.positions != nullptr) {
    const int32_t at = PlaceOf(e.step, static_cast<int32_t>(blockIdx.x)).position;
    position = e.positions + static_cast<int64_t>(at) * e.width;
  }
  float* const out = e.out + RowOffset(e.width);
  for (int i = ThreadOfBlock(); i < e.width; i += kThreads) {
    out[i] = position == nullptr ? token[i] : token[i] + position[i];
  }
}

extern "C" __global__ void add_and_norm(Norm n) {
  __shared__ float sums[kThreads];
  __shared__ float squares[kThreads];
  float* const x = n.x + RowOffset(n.width);
  float* const out = n.out + RowOffset(n.width);
  const float width = static_cast<float>(n.width);
  const float sum = SumOfBlock(AddToStream(n, x), sums);
  float mean = 0;
  float variance = sum / width;
  if (n.kind == NormKind::kLayer) {
    mean = sum / width;
    float square = 0;
    for (int i = ThreadOfBlock(); i < n.width; i += kThreads) {
      const float away = x[i] - mean;
      square += away * away;
    }
    variance = SumOfBlock(square, squares) / width;
  }
  const float factor = 1.0f / sqrtf(variance + n.epsilon);
  for (int i = ThreadOfBlock(); i < n.width; i += kThreads) {
    const float value = (x[i] - mean) * factor * n.weight[i];
    out[i] = n.bias == nullptr ? value : value + n.bias[i];
  }
}

extern "C" __global__ void gather_rows(GatherRows g) {
  const float* const from = g.from + static_cast<int64_t>(g.which[blockIdx.x]) * g.width;
  float* const out = g.out + RowOffset(g.width);
  for (int i = ThreadOfBlock(); i < g.width; i += kThreads) out[i] = from[i];
}

extern "C" __global__ void silu_mul(SiluMul s) {
  const float* const gate = s.gate_up + 2 * RowOffset(s.width);
  const float* const up = gate + s.width;
  float* const out = s.out + RowOffset(s.width);
  for (int i = ThreadOfBlock(); i < s.width; i += kThreads) {
    out[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
  }
}

extern "C" __global__ void gelu(Gelu g) {
  constexpr float kRootOfTwoOverPi = 0.79788456080286535588f;
  const float* const in = g.in + RowOffset(g.width);
  float* const out = g.out + RowOffset(g.width);
  for (int i = ThreadOfBlock(); i < g.width; i += kThreads) {
    const float value = g.bias == nullptr ? in[i] : in[i] + g.bias[i];
    const float inner = kRootOfTwoOverPi * (value + 0.044715f * value * value * value);
    out[i] = 0.5f * value * (1.0f + tanhf(inner));
  }
}

namespace {

struct Greatest {
  float value;
  int32_t index;
};

// A NaN is never greater; of equals the first in the row counts.
__device__ Greatest GreaterOf(Greatest a, Greatest b) {
  if (b.index < 0) return a;
  if (a.index < 0 || b.value > a.value) return b;
  return b.value == a.value && b.index < a.index ? b : a;
}

}  // namespace

extern "C" __global__ void arg_max(ArgMax a) {
  __shared__ float values[kWarps];
  __shared__ int32_t indices[kWarps];
  const float* const in = a.in + RowOffset(a.width);
  Greatest best = {0, -1};
  for (int i = ThreadOfBlock(); i < a.width; i += kThreads) {
    const float value = in[i];
    if (value == value) best = GreaterOf(best, {value, i});
  }
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    const float value = __shfl_xor_sync(kAllLanes, best.value, distance);
    best = GreaterOf(best, {value, __shfl_xor_sync(kAllLanes, best.index, distance)});
  }
  if (threadIdx.x == 0) {
    values[threadIdx.y] = best.value;
    indices[threadIdx.y] = best.index;
  }
  __syncthreads();
  if (ThreadOfBlock() != 0) return;
  for (int warp = 1; warp < kWarps; ++warp) best = GreaterOf(best, {values[warp], indices[warp]});
  a.out[blockIdx.x] = best.index < 0 ? 0 : best.index;
}

}  // namespace kernels::llm
