#include "kernels/llm/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/llm/reference_half.h"
#include "kernels/llm/step_place.h"

namespace kernels::llm {
namespace {

template <typename T>
T* RowOf(T* base, int64_t row, int64_t width) {
  return base + row * width;
}

double AtOrZero(const float* values, int64_t i) {
  return values == nullptr ? 0 : static_cast<double>(values[i]);
}

// The place of a token's head among the elements of a layer's pages.
int64_t PageElement(const StepRows& step, Place place, int32_t kv_heads, int32_t head,
                    int32_t width) {
  return (SlotOf(step, place.request, place.position) * kv_heads + head) * width;
}

void StoreKv(const KvPages& pages, void* side, int64_t at, double value) {
  if (pages.type == KvType::kHalf) {
    static_cast<Half*>(side)[at] = static_cast<Half>(value);
  } else {
    static_cast<float*>(side)[at] = static_cast<float>(value);
  }
}

double LoadKv(const KvPages& pages, const void* side, int64_t at) {
  return pages.type == KvType::kHalf ? static_cast<double>(static_cast<const Half*>(side)[at])
                                     : static_cast<double>(static_cast<const float*>(side)[at]);
}

// A head's elements with biases added, normalised where there is a weight for it.
std::vector<double> HeadOf(const RopeStore& r, int32_t row, int32_t number, const float* weight) {
  const int64_t offset = static_cast<int64_t>(number) * r.head_width;
  const float* const in =
      RowOf(r.qkv, row, static_cast<int64_t>(r.heads + 2 * r.kv_heads) * r.head_width) + offset;
  std::vector<double> head(static_cast<size_t>(r.head_width));
  double square = 0;
  for (int32_t i = 0; i < r.head_width; ++i) {
    const double value = in[i] + AtOrZero(r.bias, offset + i);
    head[static_cast<size_t>(i)] = value;
    square += value * value;
  }
  if (weight == nullptr) return head;
  // Where heads are normalised, biases count in the norm.
  const double factor = 1 / std::sqrt(square / r.head_width + static_cast<double>(r.epsilon));
  for (int32_t i = 0; i < r.head_width; ++i) head[static_cast<size_t>(i)] *= factor * weight[i];
  return head;
}

// As complex numbers: each pair of elements times cosine + i sine.
void TurnHead(const RopeStore& r, int32_t position, std::vector<double>* head) {
  const int32_t half = r.rotated / 2;
  for (int32_t i = 0; i < half; ++i) {
    const bool neighbours = r.pairs == RopePairs::kNeighbours;
    double& first = (*head)[static_cast<size_t>(neighbours ? 2 * i : i)];
    double& second = (*head)[static_cast<size_t>(neighbours ? 2 * i + 1 : i + half)];
    const float* const turn = r.turns + static_cast<int64_t>(position) * r.rotated + 2 * i;
    const double turned = first * turn[0] - second * turn[1];
    second = first * turn[1] + second * turn[0];
    first = turned;
  }
}

void AttendHead(const PagedAttention& a, int32_t row, int32_t head) {
  const Place place = PlaceOf(a.step, row);
  const int32_t kv_head = head / (a.heads / a.kv_heads);
  const int64_t at = (static_cast<int64_t>(row) * a.heads + head) * a.head_width;
  std::vector<double> scores;
  for (int32_t key = 0; key <= place.position; ++key) {
    const int64_t from =
        PageElement(a.step, {place.request, key}, a.kv_heads, kv_head, a.head_width);
    double score = 0;
    for (int32_t i = 0; i < a.head_width; ++i)
      score += a.q[at + i] * LoadKv(a.pages, a.pages.keys, from + i);
    scores.push_back(score * static_cast<double>(a.scale));
  }
  // Without the greatest score in each exponent, large ones would overflow even a double.
  const double greatest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  std::vector<double> out(static_cast<size_t>(a.head_width));
  for (int32_t key = 0; key <= place.position; ++key) {
    const double weight = std::exp(scores[static_cast<size_t>(key)] - greatest);
    const int64_t from =
        PageElement(a.step, {place.request, key}, a.kv_heads, kv_head, a.head_width);
    sum += weight;
    for (int32_t i = 0; i < a.head_width; ++i)
      out[static_cast<size_t>(i)] += weight * LoadKv(a.pages, a.pages.values, from + i);
  }
  for (int32_t i = 0; i < a.head_width; ++i)
    a.out[at + i] = static_cast<float>(out[static_cast<size_t>(i)] / sum);
}

}  // namespace

void Reference(const Embed& e) {
  for (int32_t row = 0; row < e.step.rows; ++row) {
    const int32_t id = e.ids[row] < 0 ? e.drawn[-1 - e.ids[row]] : e.ids[row];
    const float* const token = RowOf(e.tokens, id, e.width);
    const int64_t position = PlaceOf(e.step, row).position;
    float* const out = RowOf(e.out, row, e.width);
    for (int32_t i = 0; i < e.width; ++i)
      out[i] = static_cast<float>(token[i] + AtOrZero(e.positions, position * e.width + i));
  }
}

void Reference(const Norm& n) {
  for (int32_t row = 0; row < n.rows; ++row) {
    float* const x = RowOf(n.x, row, n.width);
    double sum = 0;
    for (int32_t i = 0; i < n.width; ++i) {
      // The stream is kept as floats between the parts of a layer, so its sum is rounded here.
      if (n.added != nullptr)
        x[i] = static_cast<float>(x[i] + static_cast<double>(RowOf(n.added, row, n.width)[i]) +
                                  AtOrZero(n.added_bias, i));
      sum += x[i];
    }
    // A root mean square norm is a layer norm that takes the mean for zero.
    const double mean = n.kind == NormKind::kLayer ? sum / n.width : 0;
    double square = 0;
    for (int32_t i = 0; i < n.width; ++i) square += (x[i] - mean) * (x[i] - mean);
    const double factor = 1 / std::sqrt(square / n.width + static_cast<double>(n.epsilon));
    for (int32_t i = 0; i < n.width; ++i) {
      const double value = (x[i] - mean) * factor * n.weight[i] + AtOrZero(n.bias, i);
      RowOf(n.out, row, n.width)[i] = static_cast<float>(value);
    }
  }
}

void Reference(const GatherRows& g) {
  for (int32_t i = 0; i < g.count; ++i)
    std::copy_n(RowOf(g.from, g.which[i], g.width), g.width, RowOf(g.out, i, g.width));
}

void Reference(const SiluMul& s) {
  for (int32_t row = 0; row < s.rows; ++row) {
    const float* const gate = RowOf(s.gate_up, row, 2 * int64_t{s.width});
    for (int32_t i = 0; i < s.width; ++i) {
      // SiLU: gate times the logistic function of gate; where the exponential is infinite that is
      // 0.
      const double value = gate[i] / (1 + std::exp(-static_cast<double>(gate[i])));
      RowOf(s.out, row, s.width)[i] = static_cast<float>(value * gate[s.width + i]);
    }
  }
}

void Reference(const Gelu& g) {
  const double root = std::sqrt(2 / M_PI);  // of GPT-2's approximation, which it was trained with
  for (int32_t row = 0; row < g.rows; ++row) {
    for (int32_t i = 0; i < g.width; ++i) {
      const double x = RowOf(g.in, row, g.width)[i] + AtOrZero(g.bias, i);
      const double value = 0.5 * x * (1 + std::tanh(root * (x + 0.044715 * x * x * x)));
      RowOf(g.out, row, g.width)[i] = static_cast<float>(value);
    }
  }
}

void Reference(const RopeStore& r) {
  for (int32_t row = 0; row < r.step.rows; ++row) {
    const Place place = PlaceOf(r.step, row);
    for (int32_t number = 0; number < r.heads + 2 * r.kv_heads; ++number) {
      const bool is_query = number < r.heads;
      const bool is_key = !is_query && number < r.heads + r.kv_heads;
      const float* const weight = is_query ? r.q_norm : is_key ? r.k_norm : nullptr;
      std::vector<double> head = HeadOf(r, row, number, weight);
      if (is_query || is_key) TurnHead(r, place.position, &head);
      const int32_t kv_head = is_key ? number - r.heads : number - r.heads - r.kv_heads;
      for (int32_t i = 0; i < r.head_width; ++i) {
        const double value = head[static_cast<size_t>(i)];
        if (is_query) {
          RowOf(r.q, int64_t{row} * r.heads + number, r.head_width)[i] = static_cast<float>(value);
          continue;
        }
        const int64_t at = PageElement(r.step, place, r.kv_heads, kv_head, r.head_width) + i;
        StoreKv(r.pages, is_key ? r.pages.keys : r.pages.values, at, value);
      }
    }
  }
}

void Reference(const PagedAttention& a) {
  for (int32_t row = 0; row < a.step.rows; ++row) {
    for (int32_t head = 0; head < a.heads; ++head) AttendHead(a, row, head);
  }
}

void Reference(const CopyBlocks& c) {
  for (int32_t pool = 0; pool < c.pools; ++pool) {
    char* const base = static_cast<char*>(c.pool) + pool * c.pool_bytes;
    // A block may be copied to itself.
    for (int32_t copy = 0; copy < c.count; ++copy)
      std::memmove(base + static_cast<int64_t>(c.copies[2 * copy + 1]) * c.block_bytes,
                   base + static_cast<int64_t>(c.copies[2 * copy]) * c.block_bytes,
                   static_cast<size_t>(c.block_bytes));
  }
}

void Reference(const ArgMax& a) {
  for (int32_t row = 0; row < a.rows; ++row) {
    const float* const in = RowOf(a.in, row, a.width);
    int32_t best = -1;
    for (int32_t i = 0; i < a.width; ++i) {
      // A row of nothing but NaN is a fault of the model; some index must be told nevertheless.
      if (!std::isnan(in[i]) && (best < 0 || in[i] > in[best])) best = i;
    }
    a.out[row] = std::max(best, 0);
  }
}

}  // namespace kernels::llm
