// How many blocks of keys and values an engine has: as many as were asked for, or what fits a share
// of the device's memory. Pure.
// Thread safety: functions without state.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace serve::llm {

// Unless more is said, other programs have the rest.
constexpr uint64_t kPoolShareDivisor = 4;

struct PoolWish {
  int32_t blocks = 0;        // 0: as the bytes say
  uint64_t bytes = 0;        // 0: a share of the free memory
  int32_t context_max = 0;   // tokens of a request
  int32_t requests_max = 0;  // that have blocks at once
};

// `free_bytes`: of the device, without the weights. A share is at most what `requests_max` requests
// of `context_max` tokens need. A pool in which no such request fits is refused with a sentence.
absl::StatusOr<int32_t> PoolBlocks(const PoolWish& wish, uint64_t free_bytes, uint64_t block_bytes);

}  // namespace serve::llm
