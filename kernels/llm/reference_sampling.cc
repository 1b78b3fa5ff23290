// The references of the kernels from logits to tokens. What decides which token is drawn is whole
// numbers, which both compute alike; here tokens are sorted, there thresholds are searched.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/llm/philox.h"
#include "kernels/llm/reference.h"
#include "kernels/llm/sampling_rule.h"

namespace kernels::llm {
namespace {

// Indices in falling order of `values`, of equals the first; NaN last.
template <typename T>
std::vector<int32_t> Ranking(const T* values, int32_t width) {
  std::vector<int32_t> order(static_cast<size_t>(width));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [values](int32_t a, int32_t b) {
    if (values[b] != values[b]) return values[a] == values[a];
    return values[a] > values[b];
  });
  return order;
}

// The least weight that counts, by going down the sorted weights.
uint32_t LeastKept(const uint32_t* weights, int32_t width, const SamplingRow& how) {
  std::vector<uint32_t> sorted(weights, weights + width);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  uint32_t least = LeastWeight(how.min_p);
  const size_t top = static_cast<size_t>(how.top_k);
  if (top > 0 && top < sorted.size()) least = std::max(least, sorted[top - 1]);
  if (!(how.top_p < 1)) return least;
  uint64_t total = 0;
  for (const uint32_t weight : sorted) total += weight >= least ? weight : 0;
  uint64_t sum = 0;
  for (const uint32_t weight : sorted) {
    sum += weight;
    if (sum >= WantedSum(how.top_p, total)) return std::max(least, weight);
  }
  return least;
}

int32_t Draw(const uint32_t* weights, int32_t width, const SamplingRow& how) {
  const bool greedy = !(how.temperature > 0);
  const uint32_t least = greedy ? kWeightMax : LeastKept(weights, width, how);
  uint64_t total = 0;
  for (int32_t i = 0; i < width; ++i) total += weights[i] >= least ? weights[i] : 0;
  uint64_t rest = greedy ? 0 : Below(total, RandomOf(how));
  for (int32_t i = 0; i < width; ++i) {
    const uint32_t weight = weights[i] >= least ? weights[i] : 0;
    if (rest < weight) return i;
    rest -= weight;
  }
  return 0;
}

double GreatestOf(const float* logits, int32_t width) {
  double greatest = -std::numeric_limits<double>::infinity();
  for (int32_t i = 0; i < width; ++i) greatest = std::fmax(greatest, logits[i]);
  return greatest;
}

}  // namespace

void Reference(const EditLogits& e) {
  for (int32_t row = 0; row < e.rows; ++row) {
    const float* const in = e.in + int64_t{row} * e.width;
    float* const out = e.out + int64_t{row} * e.width;
    std::copy_n(in, e.width, out);
    for (int32_t i = e.start[row]; i < e.start[row + 1]; ++i)
      out[e.edits[i].token] = Edited(in[e.edits[i].token], e.edits[i], e.penalties[row]);
  }
}

void Reference(const SampleWeights& s) {
  for (int32_t row = 0; row < s.rows; ++row) {
    const float* const logits = s.logits + int64_t{row} * s.width;
    const double greatest = GreatestOf(logits, s.width);
    const double temperature = static_cast<double>(s.how[row].temperature);
    for (int32_t i = 0; i < s.width; ++i) {
      const double logit = static_cast<double>(logits[i]);
      double share = logit == greatest ? 1 : 0;
      if (temperature > 0 && logit < greatest) share = std::exp((logit - greatest) / temperature);
      s.weights[int64_t{row} * s.width + i] = static_cast<uint32_t>(share * kWeightMax);
    }
  }
}

void Reference(const SampleToken& s) {
  for (int32_t row = 0; row < s.rows; ++row)
    s.out[row] = Draw(s.weights + int64_t{row} * s.width, s.width, s.how[row]);
}

void Reference(const Logprobs& l) {
  for (int32_t row = 0; row < l.rows; ++row) {
    const float* const logits = l.logits + int64_t{row} * l.width;
    const double greatest = GreatestOf(logits, l.width);
    double sum = 0;
    int32_t rank = 0;
    const float chosen = logits[l.chosen[row]];
    for (int32_t i = 0; i < l.width; ++i) {
      if (!std::isnan(logits[i])) sum += std::exp(static_cast<double>(logits[i]) - greatest);
      rank += logits[i] > chosen ? 1 : 0;
    }
    const double base = greatest + std::log(sum);
    l.chosen_logprob[row] = static_cast<float>(static_cast<double>(chosen) - base);
    l.chosen_rank[row] = rank;
    const std::vector<int32_t> order = Ranking(logits, l.width);
    for (int32_t i = 0; i < l.top; ++i) {
      const int32_t token = order[static_cast<size_t>(i)];
      const bool is_nan = std::isnan(logits[token]);
      const double logprob = is_nan ? -std::numeric_limits<double>::infinity()
                                    : static_cast<double>(logits[token]) - base;
      l.top_tokens[int64_t{row} * l.top + i] = is_nan ? 0 : token;
      l.top_logprobs[int64_t{row} * l.top + i] = static_cast<float>(logprob);
    }
  }
}

}  // namespace kernels::llm
