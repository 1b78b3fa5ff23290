// The arguments of each kernel of language models. The struct is the kernel's one parameter, for
// device and for its reference on the host (reference.h) alike; launch.h has its grid.
//
// A step computes rows: tokens of several requests, packed one after the other (Orca, section 4.2,
// selective batching). The embedding, RopeStore and PagedAttention alone know which request a row
// is of; all others take rows as they come. A row's result depends on the row and on its request's
// keys and values alone: each sum is added in an order of its own, and attention merges segments of
// kSegmentKeys from position 0 on, however many rows each step has computed.
//
// Arrays are row-major, the last side written last. Addresses are of the device, or of the host for
// the reference. REQUIRES, of all: sizes > 0, as many elements as the shapes say, no overlap of
// what is written with what is read unless a field says so.
// Thread safety: values.
#pragma once

#include <cstdint>

namespace kernels::llm {

constexpr int32_t kBlockTokens = 16;    // whose keys and values lie in one block
constexpr int32_t kSegmentKeys = 256;   // that attention adds before it merges
constexpr int32_t kHeadWidthMax = 256;  // elements; a head has a multiple of kHeadWidthStep
constexpr int32_t kHeadWidthStep = 4;

// Which request each row is of, and where its keys and values are. The tokens of request b that the
// step computes are the last ones that it has: rows [start[b], start[b + 1]) are of positions
// [length[b] - (start[b + 1] - start[b]), length[b]).
struct StepRows {
  const int32_t* start;   // [requests + 1], rising from 0 to `rows`
  const int32_t* length;  // [requests]: tokens after the step
  const int32_t* table;   // [requests, table_width]: the blocks of positions 0-15, 16-31, ...
  int32_t requests;
  int32_t rows;
  int32_t table_width;
};

// out = tokens[ids] (+ positions[position of the row]).
struct Embed {
  StepRows step;
  const int32_t* ids;      // [rows], each below the vocabulary, or -1 - n: drawn[n]
  const int32_t* drawn;    // tokens that were drawn before, or null: no id is negative
  const float* tokens;     // [vocabulary, width]
  const float* positions;  // [context, width], or null: none
  float* out;              // [rows, width]
  int32_t width;
};

enum class NormKind : int32_t { kRms, kLayer };

// x += added + added_bias, then out = the norm of x, times weight, plus bias: the end of one part
// of a layer and the beginning of the next.
struct Norm {
  float* x;                 // [rows, width]: the residual stream
  const float* added;       // [rows, width], or null: none
  const float* added_bias;  // [width], or null; only with `added`
  const float* weight;      // [width]
  const float* bias;        // [width], or null
  float* out;               // [rows, width]
  int32_t rows;
  int32_t width;
  float epsilon;
  NormKind kind;
};

// out[i] = from[which[i]].
struct GatherRows {
  const float* from;     // [?, width]
  const int32_t* which;  // [count]
  float* out;            // [count, width]
  int32_t count;
  int32_t width;
};

// out = silu(gate) * up, of rows that are the gate's elements and then up's.
struct SiluMul {
  const float* gate_up;  // [rows, 2, width]
  float* out;            // [rows, width]
  int32_t rows;
  int32_t width;
};

// out = gelu(in + bias), by the tanh of GPT-2.
struct Gelu {
  const float* in;    // [rows, width]
  const float* bias;  // [width], or null
  float* out;         // [rows, width]; may be `in`
  int32_t rows;
  int32_t width;
};

enum class KvType : int32_t { kFloat, kHalf };

// Keys and values of one layer. A block has kBlockTokens tokens of [kv_heads, head_width] each.
struct KvPages {
  void* keys;
  void* values;
  KvType type;
};

// Which elements of a head a position turns together.
enum class RopePairs : int32_t {
  kNeighbours,  // 2i and 2i + 1: Llama's weights in GGUF files
  kHalves,      // i and i + rotated / 2
};

// Of each row's queries, keys and values: adds biases, normalises heads of queries and keys, turns
// both by the row's position, and stores keys and values where attention finds them.
struct RopeStore {
  StepRows step;
  const float* qkv;     // [rows, heads + 2 * kv_heads, head_width]: queries, keys, values
  const float* bias;    // [heads + 2 * kv_heads, head_width], or null
  const float* q_norm;  // [head_width], or null: heads are not normalised
  const float* k_norm;  // as q_norm
  const float* turns;   // [positions, rotated / 2, 2]: cosine and sine; null when rotated is 0
  float* q;             // [rows, heads, head_width]
  KvPages pages;
  int32_t heads;
  int32_t kv_heads;
  int32_t head_width;  // at most kHeadWidthMax
  int32_t rotated;     // elements of a head that turn, from its first; even
  RopePairs pairs;
  float epsilon;  // of the norms
};

// out = softmax(scale * q . keys) . values for each row and head, over the keys of positions up to
// the row's own. Heads [i * heads / kv_heads, (i + 1) * heads / kv_heads) share the keys of head i.
struct PagedAttention {
  StepRows step;
  const float* q;  // [rows, heads, head_width]
  KvPages pages;
  float* out;  // [rows, heads, head_width]
  int32_t heads;
  int32_t kv_heads;
  int32_t head_width;  // at most kHeadWidthMax, a multiple of kHeadWidthStep
  float scale;
};

// Copies blocks within each of `pools` pools, one copy after the other: a later copy may read the
// block that an earlier one has written.
struct CopyBlocks {
  void* pool;             // the first; the others follow
  const int32_t* copies;  // [count, 2]: from, to
  int32_t count;
  int32_t pools;
  int64_t pool_bytes;
  int32_t block_bytes;  // a multiple of 16
};

// out = the index of the greatest element of each row, the first of equals. A NaN is the least.
struct ArgMax {
  const float* in;  // [rows, width]
  int32_t* out;     // [rows]
  int32_t rows;
  int32_t width;
};

// --- sampling
// -------------------------------------------------------------------------------------

// A change of one logit, for the sake of a request's own tokens or at its client's wish.
struct TokenEdit {
  int32_t token;
  int32_t generated;  // how often the answer has it
  int32_t appeared;   // 1: the prompt or the answer has it; else 0
  float bias;         // added; minus infinity forbids the token
};

// Neutral: 1, 0, 0. The names are those of OpenAI's and vLLM's interfaces.
struct Penalties {
  float repetition;  // > 0: divides positive logits of tokens that appeared, multiplies others
  float frequency;   // taken from a logit as often as the token was generated
  float presence;    // taken from it once
};

// out = in with the edits: penalties, then biases. Other logits are copied, so that log
// probabilities can be told of the model's own.
struct EditLogits {
  const float* in;             // [rows, width]
  float* out;                  // [rows, width]
  const TokenEdit* edits;      // of each row, no token twice
  const int32_t* start;        // [rows + 1], rising: row r has edits [start[r], start[r + 1])
  const Penalties* penalties;  // [rows]
  int32_t rows;
  int32_t width;
};

// How one row's token is drawn. Of the weights exp(logit / temperature) those count that are at
// least min_p times the greatest, of these the top_k greatest, and of these the greatest that
// together have top_p of their sum. Weights that are equal to the last one count, too.
struct SamplingRow {
  float temperature;  // 0: the first of the greatest logits, whatever else is said
  float top_p;        // of (0, 1]
  float min_p;        // of [0, 1]
  int32_t top_k;      // 0: all
  uint64_t seed;      // of the request
  int32_t position;   // of the token that is drawn
  int32_t copy;       // which answer to the request
};

// The weight of the greatest logit. Weights are whole numbers, so that sums of them are exact in
// any order: what is drawn depends on no order of addition. A weight below 1 counts as none.
constexpr uint32_t kWeightMax = 1u << 31;

// weights = kWeightMax * exp((logit - the greatest) / temperature), rounded down. NaN has none.
struct SampleWeights {
  const float* logits;     // [rows, width]
  const SamplingRow* how;  // [rows]
  uint32_t* weights;       // [rows, width]
  int32_t rows;
  int32_t width;
};

// out = the token that the row's random number falls on, where tokens that count have shares of
// their weights, in the order of their numbers. 0 where no token has a weight.
struct SampleToken {
  const uint32_t* weights;  // [rows, width]
  const SamplingRow* how;   // [rows]
  int32_t* out;             // [rows]
  int32_t rows;
  int32_t width;
};

constexpr int32_t kTopLogprobsMax = 20;

// Logarithms of probabilities, of the chosen token and of the likeliest ones, by logits as they
// are.
struct Logprobs {
  const float* logits;    // [rows, width]
  const int32_t* chosen;  // [rows]
  float* chosen_logprob;  // [rows]
  int32_t* chosen_rank;   // [rows]: how many tokens are likelier
  int32_t* top_tokens;    // [rows, top]: the likeliest first, of equals the first
  float* top_logprobs;    // [rows, top]
  int32_t rows;
  int32_t width;
  int32_t top;  // at most kTopLogprobsMax, and width
};

}  // namespace kernels::llm
