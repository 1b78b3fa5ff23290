#include "serve/llm/stage/packed_batch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/llm/arguments.h"

namespace serve::llm {
namespace {

bool AllBelow(std::span<const int32_t> numbers, int32_t end) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [end](int32_t number) { return number >= 0 && number < end; });
}

// Empty: nothing is wrong.
std::string FaultOf(const BatchRequest& request, const BatchLimits& limits) {
  const int64_t count = std::ssize(request.tokens);
  if (count == 0) return "has no tokens";
  if (request.length < count || request.length > limits.positions)
    return absl::StrCat("has a length of ", request.length, " with ", count, " tokens to compute");
  if (!AllBelow(request.tokens, limits.vocabulary)) return "has a token beyond the vocabulary";
  if (request.follows >= limits.drawn || (request.follows >= 0 && count != 1))
    return absl::StrCat("follows token ", request.follows, " of the step before, which draws ",
                        limits.drawn);
  if (!AllBelow(request.blocks, limits.blocks)) return "has a block beyond the pool";
  if (std::ssize(request.blocks) * kernels::llm::kBlockTokens < request.length)
    return absl::StrCat("has ", request.blocks.size(), " blocks for ", request.length, " tokens");
  for (const Sampling& sampling : request.samples) {
    if (std::string fault = SamplingFault(sampling, limits.vocabulary); !fault.empty())
      return fault;
  }
  return "";
}

// The table is no wider than what the longest request needs of it.
size_t BlocksOf(const BatchRequest& request) {
  constexpr int32_t kTokens = kernels::llm::kBlockTokens;
  return static_cast<size_t>((request.length + kTokens - 1) / kTokens);
}

}  // namespace

absl::StatusOr<PackedBatch> PackUntrusted(std::span<const BatchRequest> requests,
                                          std::span<const std::pair<int32_t, int32_t>> copies,
                                          const BatchLimits& limits) {
  PackedBatch batch;
  if (std::ssize(requests) > limits.requests)
    return absl::InvalidArgumentError(absl::StrCat("a step of ", requests.size(), " requests"));
  size_t width = 1;
  for (const BatchRequest& request : requests) {
    if (const std::string fault = FaultOf(request, limits); !fault.empty())
      return absl::InvalidArgumentError("a request of a step " + fault);
    width = std::max(width, BlocksOf(request));
  }
  batch.table_width = static_cast<int32_t>(width);
  batch.start.push_back(0);
  for (const BatchRequest& request : requests) {
    if (request.follows < 0) {
      batch.ids.insert(batch.ids.end(), request.tokens.begin(), request.tokens.end());
    } else {
      batch.ids.push_back(-1 - request.follows);
    }
    batch.start.push_back(batch.rows());
    batch.length.push_back(request.length);
    const auto end = request.blocks.begin() + static_cast<ptrdiff_t>(BlocksOf(request));
    batch.table.insert(batch.table.end(), request.blocks.begin(), end);
    batch.table.resize(batch.length.size() * width, 0);
    for (const Sampling& sampling : request.samples) {
      batch.sampled.push_back(batch.rows() - 1);
      batch.sampling.Add(sampling);
    }
  }
  if (batch.rows() > limits.rows)
    return absl::InvalidArgumentError(absl::StrCat("a step of ", batch.rows(), " rows"));
  if (std::ssize(batch.sampled) > limits.requests)
    return absl::InvalidArgumentError(
        absl::StrCat("a step that draws ", batch.sampled.size(), " tokens"));
  for (const auto& [from, to] : copies) {
    const int32_t pair[] = {from, to};
    if (!AllBelow(pair, limits.blocks))
      return absl::InvalidArgumentError("a step copies a block beyond the pool");
    batch.copies.insert(batch.copies.end(), {from, to});
  }
  return batch;
}

}  // namespace serve::llm
