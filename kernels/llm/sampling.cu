// Kernels from logits to tokens, one block of threads a row.
#include "kernels/llm/arguments.h"
#include "kernels/llm/block_sums.h"
#include "kernels/llm/philox.h"
#include "kernels/llm/sampling_rule.h"

namespace kernels::llm {
namespace {

template <typename T>
__device__ T* RowOf(T* base, int32_t width) {
  return base + static_cast<int64_t>(blockIdx.x) * width;
}

// Shared memory in which a block's threads exchange numbers; each use begins and ends at a barrier.
struct Board {
  float floats[kThreads];
  uint64_t sums[kThreads];
  int32_t counts[kThreads];
};

// All threads get the sum, by `add`, of their values: halves of the block are added in turn.
template <typename T, typename Add>
__device__ T OfBlock(T value, T* board, Add add) {
  board[ThreadOfBlock()] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    const int thread = ThreadOfBlock();
    if (thread < half) board[thread] = add(board[thread], board[thread + half]);
    __syncthreads();
  }
  const T result = board[0];
  __syncthreads();
  return result;
}

__device__ float GreatestOfRow(const float* logits, int32_t width, Board* board) {
  float greatest = -INFINITY;
  // fmaxf gives the other where one is NaN.
  for (int i = ThreadOfBlock(); i < width; i += kThreads) greatest = fmaxf(greatest, logits[i]);
  return OfBlock(greatest, board->floats, [](float a, float b) { return fmaxf(a, b); });
}

// How many weights are at least `least`, and their sum.
struct Kept {
  int32_t count;
  uint64_t sum;
};

__device__ Kept KeptOf(const uint32_t* weights, int32_t width, uint32_t least, Board* board) {
  Kept kept = {0, 0};
  for (int i = ThreadOfBlock(); i < width; i += kThreads) {
    const uint32_t weight = weights[i];
    if (weight < least) continue;
    ++kept.count;
    kept.sum += weight;
  }
  kept.count = OfBlock(kept.count, board->counts, [](int32_t a, int32_t b) { return a + b; });
  kept.sum = OfBlock(kept.sum, board->sums, [](uint64_t a, uint64_t b) { return a + b; });
  return kept;
}

// The greatest weight from `least` on for which those that are at least as great suffice.
template <typename Suffices>
__device__ uint32_t Raised(const uint32_t* weights, int32_t width, uint32_t least, Board* board,
                           Suffices suffices) {
  uint32_t low = least;  // suffices
  uint32_t high = kWeightMax;
  while (low < high) {
    const uint32_t middle = high - (high - low) / 2;
    if (suffices(KeptOf(weights, width, middle, board))) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// The least weight that counts.
__device__ uint32_t Threshold(const uint32_t* weights, int32_t width, const SamplingRow& how,
                              Board* board) {
  uint32_t least = LeastWeight(how.min_p);
  if (how.top_k > 0 && how.top_k < width &&
      KeptOf(weights, width, least, board).count > how.top_k) {
    least = Raised(weights, width, least, board,
                   [&](const Kept& kept) { return kept.count >= how.top_k; });
  }
  if (how.top_p < 1) {
    const uint64_t wanted = WantedSum(how.top_p, KeptOf(weights, width, least, board).sum);
    least =
        Raised(weights, width, least, board, [&](const Kept& kept) { return kept.sum >= wanted; });
  }
  return least;
}

// Threads have ranges of tokens, one behind the other: the thread whose range `at` falls into, and
// the rest of `at` there. One thread goes through the sums.
struct Fall {
  int32_t thread;  // -1: there is none
  uint64_t rest;
};

__device__ Fall FallOf(const uint64_t* sums, uint64_t at) {
  for (int thread = 0; thread < kThreads; ++thread) {
    if (at < sums[thread]) return {thread, at};
    at -= sums[thread];
  }
  return {-1, 0};
}

}  // namespace

extern "C" __global__ void edit_logits(EditLogits e) {
  const float* const in = RowOf(e.in, e.width);
  float* const out = RowOf(e.out, e.width);
  for (int i = ThreadOfBlock(); i < e.width; i += kThreads) out[i] = in[i];
  __syncthreads();
  const Penalties penalties = e.penalties[blockIdx.x];
  const int last = e.start[blockIdx.x + 1];
  for (int i = e.start[blockIdx.x] + ThreadOfBlock(); i < last; i += kThreads) {
    const TokenEdit edit = e.edits[i];
    out[edit.token] = Edited(in[edit.token], edit, penalties);
  }
}

extern "C" __global__ void sample_weights(SampleWeights s) {
  __shared__ Board board;
  const float* const logits = RowOf(s.logits, s.width);
  uint32_t* const weights = RowOf(s.weights, s.width);
  const float temperature = s.how[blockIdx.x].temperature;
  const float greatest = GreatestOfRow(logits, s.width, &board);
  for (int i = ThreadOfBlock(); i < s.width; i += kThreads) {
    const float logit = logits[i];
    float share = logit == greatest ? 1.0f : 0.0f;  // of the greatest; infinities are equal, too
    if (temperature > 0 && logit < greatest) share = expf((logit - greatest) / temperature);
    weights[i] = static_cast<uint32_t>(share * static_cast<float>(kWeightMax));
  }
}

extern "C" __global__ void sample_token(SampleToken s) {
  __shared__ Board board;
  __shared__ Fall fall;
  const uint32_t* const weights = RowOf(s.weights, s.width);
  const SamplingRow how = s.how[blockIdx.x];
  const bool greedy = !(how.temperature > 0);
  const uint32_t least = greedy ? kWeightMax : Threshold(weights, s.width, how, &board);
  const uint64_t total = KeptOf(weights, s.width, least, &board).sum;
  const uint64_t at = greedy ? 0 : Below(total, RandomOf(how));
  // Neighbours of one range in one thread: the order of the draw is that of the tokens' numbers.
  const int range = (s.width + kThreads - 1) / kThreads;
  const int first = ThreadOfBlock() * range;
  const int last = min(first + range, s.width);
  uint64_t sum = 0;
  for (int i = first; i < last; ++i) sum += weights[i] >= least ? weights[i] : 0;
  board.sums[ThreadOfBlock()] = sum;
  __syncthreads();
  if (ThreadOfBlock() == 0) {
    fall = FallOf(board.sums, at);
    if (fall.thread < 0) s.out[blockIdx.x] = 0;
  }
  __syncthreads();
  if (ThreadOfBlock() != fall.thread) return;
  uint64_t rest = fall.rest;
  for (int i = first; i < last; ++i) {
    const uint32_t weight = weights[i] >= least ? weights[i] : 0;
    if (rest < weight) {
      s.out[blockIdx.x] = i;
      return;
    }
    rest -= weight;
  }
}

namespace {

struct Ranked {
  float logit;
  int32_t token;  // -1: none
};

// Of equals the first; NaN is never among them.
__device__ bool IsLikelier(const Ranked& a, const Ranked& b) {
  if (a.token < 0 || b.token < 0) return b.token < 0 && a.token >= 0;
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

// The likeliest of those that come behind `before`.
__device__ Ranked NextOf(const float* logits, int32_t width, const Ranked& before, Board* board) {
  Ranked best = {0, -1};
  for (int i = ThreadOfBlock(); i < width; i += kThreads) {
    const Ranked one = {logits[i], i};
    if (one.logit != one.logit) continue;
    if (before.token >= 0 && !IsLikelier(before, one)) continue;
    if (IsLikelier(one, best)) best = one;
  }
  const int thread = ThreadOfBlock();
  board->floats[thread] = best.logit;
  board->counts[thread] = best.token;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) {
      const Ranked mine = {board->floats[thread], board->counts[thread]};
      const Ranked other = {board->floats[thread + half], board->counts[thread + half]};
      if (IsLikelier(other, mine)) {
        board->floats[thread] = other.logit;
        board->counts[thread] = other.token;
      }
    }
    __syncthreads();
  }
  const Ranked result = {board->floats[0], board->counts[0]};
  __syncthreads();
  return result;
}

}  // namespace

extern "C" __global__ void logprobs(Logprobs l) {
  __shared__ Board board;
  const float* const logits = RowOf(l.logits, l.width);
  const float greatest = GreatestOfRow(logits, l.width, &board);
  float sum = 0;
  for (int i = ThreadOfBlock(); i < l.width; i += kThreads) {
    if (logits[i] == logits[i]) sum += expf(logits[i] - greatest);
  }
  sum = OfBlock(sum, board.floats, [](float a, float b) { return a + b; });
  const float base = greatest + logf(sum);
  const float chosen = logits[l.chosen[blockIdx.x]];
  int32_t rank = 0;
  for (int i = ThreadOfBlock(); i < l.width; i += kThreads) rank += logits[i] > chosen ? 1 : 0;
  rank = OfBlock(rank, board.counts, [](int32_t a, int32_t b) { return a + b; });
  if (ThreadOfBlock() == 0) {
    l.chosen_logprob[blockIdx.x] = chosen - base;
    l.chosen_rank[blockIdx.x] = rank;
  }
  Ranked next = {0, -1};
  for (int i = 0; i < l.top; ++i) {
    next = NextOf(logits, l.width, next, &board);
    if (ThreadOfBlock() != 0) continue;
    const int64_t at = static_cast<int64_t>(blockIdx.x) * l.top + i;
    l.top_tokens[at] = max(next.token, 0);
    l.top_logprobs[at] = next.token < 0 ? -INFINITY : next.logit - base;
  }
}

}  // namespace kernels::llm
