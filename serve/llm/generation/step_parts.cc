#include "serve/llm/generation/step_parts.h"

#include <algorithm>
#include <cassert>

namespace serve::llm {
namespace {

class Cutter {
 public:
  explicit Cutter(const PartLimits& limits) : limits_(limits), parts_(1) {}

  void Add(const BatchRequest& request) {
    const int32_t size = static_cast<int32_t>(request.tokens.size());
    const int32_t draws = static_cast<int32_t>(request.samples.size());
    assert(size > 0 && draws <= limits_.requests);
    for (int32_t done = 0; done < size;) {
      if (rows_ == limits_.rows || IsFullOfRequests()) Begin();
      int32_t count = std::min(limits_.rows - rows_, size - done);
      if (done + count == size && draws_ + draws > limits_.requests) {
        Begin();
        count = std::min(limits_.rows, size - done);
      }
      AddChunk(request, done, count);
      done += count;
    }
  }
  std::vector<Plan> Take() { return std::move(parts_); }
  std::vector<std::pair<int32_t, int32_t>>* copies() { return &parts_.front().copies; }

 private:
  bool IsFullOfRequests() const {
    return static_cast<int32_t>(parts_.back().requests.size()) == limits_.requests;
  }
  void Begin() {
    parts_.emplace_back();
    rows_ = 0;
    draws_ = 0;
  }
  // Tokens are drawn after the last chunk.
  void AddChunk(const BatchRequest& request, int32_t done, int32_t count) {
    const int32_t size = static_cast<int32_t>(request.tokens.size());
    const auto begin = request.tokens.begin() + done;
    BatchRequest chunk;
    chunk.tokens = {begin, begin + count};
    chunk.follows = request.follows;
    chunk.length = request.length - (size - done - count);
    chunk.blocks = request.blocks;
    if (done + count == size) chunk.samples = request.samples;
    draws_ += static_cast<int32_t>(chunk.samples.size());
    rows_ += count;
    parts_.back().requests.push_back(std::move(chunk));
  }

  const PartLimits limits_;
  std::vector<Plan> parts_;
  int32_t rows_ = 0;   // of the last part
  int32_t draws_ = 0;  // of the last part
};

}  // namespace

std::vector<Plan> PartsOf(std::vector<BatchRequest> requests,
                          std::vector<std::pair<int32_t, int32_t>> copies,
                          const PartLimits& limits) {
  Cutter cutter(limits);
  *cutter.copies() = std::move(copies);
  for (const BatchRequest& request : requests) cutter.Add(request);
  return cutter.Take();
}

size_t SamplesOf(const Plan& plan) {
  size_t samples = 0;
  for (const BatchRequest& request : plan.requests) samples += request.samples.size();
  return samples;
}

}  // namespace serve::llm
