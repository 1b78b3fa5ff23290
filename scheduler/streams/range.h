// A range of device memory by its address.
#pragma once

#include <cstdint>

namespace scheduler::streams {

struct Range {
  uint64_t begin = 0;
  uint64_t bytes = 0;

  uint64_t end() const { return begin + bytes; }
  bool operator==(const Range& other) const = default;
};

}  // namespace scheduler::streams
