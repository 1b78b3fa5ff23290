// A random step: requests with some tokens computed and some to compute, in blocks that lie
// anywhere in the pool.
#pragma once

#include <numeric>

#include "tests/kernels/llm/device.h"

namespace kernels::llm {

// The tokens of one request that are computed before the step, and by it.
struct RequestShape {
  int32_t before = 0;
  int32_t count = 1;
  int32_t Length() const { return before + count; }
};

class Step {
 public:
  // Blocks are given out of `blocks`, which has enough.
  Step(const std::vector<RequestShape>& requests, std::vector<std::vector<int32_t>> tables)
      : start_(Starts(requests)),
        length_(Lengths(requests)),
        width_(Width(tables)),
        table_(Table(tables)),
        requests_(static_cast<int32_t>(requests.size())) {}

  StepRows On(Side side) {
    return {start_.On(side), length_.On(side),   table_.On(side),
            requests_,       start_.host.back(), width_};
  }
  int32_t rows() const { return start_.host.back(); }

 private:
  static std::vector<int32_t> Starts(const std::vector<RequestShape>& requests) {
    std::vector<int32_t> starts = {0};
    for (const RequestShape& request : requests) starts.push_back(starts.back() + request.count);
    return starts;
  }
  static std::vector<int32_t> Lengths(const std::vector<RequestShape>& requests) {
    std::vector<int32_t> lengths;
    for (const RequestShape& request : requests) lengths.push_back(request.Length());
    return lengths;
  }
  static int32_t Width(const std::vector<std::vector<int32_t>>& tables) {
    size_t width = 1;
    for (const std::vector<int32_t>& table : tables) width = std::max(width, table.size());
    return static_cast<int32_t>(width);
  }
  // What a request has no block for is a number that no pool has.
  static std::vector<int32_t> Table(const std::vector<std::vector<int32_t>>& tables) {
    std::vector<int32_t> table;
    for (const std::vector<int32_t>& blocks : tables) {
      table.insert(table.end(), blocks.begin(), blocks.end());
      table.resize(table.size() + static_cast<size_t>(Width(tables)) - blocks.size(), 1 << 30);
    }
    return table;
  }

  Array<int32_t> start_;
  Array<int32_t> length_;
  int32_t width_;
  Array<int32_t> table_;
  int32_t requests_;
};

struct RandomRequests {
  std::vector<RequestShape> shapes;
  std::vector<std::vector<int32_t>> tables;
  int32_t blocks = 0;  // of the pool
};

inline RandomRequests MakeRequests(Random* random, int32_t requests_max, int32_t tokens_max) {
  RandomRequests made;
  const int32_t requests = random->Int(1, requests_max);
  for (int32_t i = 0; i < requests; ++i) {
    const int32_t length = random->Int(1, tokens_max);
    const int32_t count = random->Chance(50) ? 1 : random->Int(1, std::min(length, 24));
    made.shapes.push_back({length - count, count});
    made.blocks += (length + kBlockTokens - 1) / kBlockTokens;
  }
  made.blocks += random->Int(0, 3);
  std::vector<int32_t> free(static_cast<size_t>(made.blocks));
  std::iota(free.begin(), free.end(), 0);
  random->Shuffle(&free);
  for (const RequestShape& shape : made.shapes) {
    const auto count = (shape.Length() + kBlockTokens - 1) / kBlockTokens;
    made.tables.emplace_back(free.end() - count, free.end());
    free.resize(free.size() - static_cast<size_t>(count));
  }
  return made;
}

}  // namespace kernels::llm
