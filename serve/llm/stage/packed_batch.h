// One step's rows of several requests, packed one after the other: what the device gets of a plan
// (Orca, section 4.2, selective batching). Pure.
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/llm/stage/sampling_batch.h"

namespace serve::llm {

// What a step computes of one request: its last `tokens`. Keys and values of the tokens before
// them are in the blocks already.
struct BatchRequest {
  std::vector<int32_t> tokens;
  // Not negative: the one token is not known yet. This sample of the step before draws the token,
  // so the device knows it when this step begins.
  int32_t follows = -1;
  int32_t length = 0;           // tokens of the request after the step
  std::vector<int32_t> blocks;  // of its keys and values, in order; may be more than it needs yet
  // How tokens are drawn after the last row: none while a prompt is computed in chunks, several
  // where answers to one prompt begin.
  std::vector<Sampling> samples;
};

struct BatchLimits {
  int32_t rows = 0;        // of a step
  int32_t requests = 0;    // of a step, and tokens that it draws
  int32_t positions = 0;   // of a request
  int32_t blocks = 0;      // of the pool
  int32_t vocabulary = 0;  // ids are below
  int32_t drawn = 0;       // tokens of the step before that a request may follow
};

// As the kernels take it (StepRows in kernels/llm/arguments.h).
struct PackedBatch {
  std::vector<int32_t> ids;      // [rows]; -1 - n: what sample n of the step before draws
  std::vector<int32_t> start;    // [requests + 1]
  std::vector<int32_t> length;   // [requests]
  std::vector<int32_t> table;    // [requests, table_width]
  std::vector<int32_t> sampled;  // rows after which tokens are drawn, by request
  SamplingBatch sampling;        // of these
  std::vector<int32_t> copies;   // [?, 2] of blocks, from and to, before the rows
  int32_t table_width = 0;

  int32_t rows() const { return static_cast<int32_t>(ids.size()); }
  int32_t requests() const { return static_cast<int32_t>(length.size()); }
};

// The one door for plans: a kernel would use what is out of bounds as an address. Fails with a
// sentence on the first fault. No rows are no fault.
absl::StatusOr<PackedBatch> PackUntrusted(std::span<const BatchRequest> requests,
                                          std::span<const std::pair<int32_t, int32_t>> copies,
                                          const BatchLimits& limits);

}  // namespace serve::llm
