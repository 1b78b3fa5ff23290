// A recorded op stream: eight bytes of magic, then a StreamRecord per operation, little-endian.
// Thread safety: stateless; std only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shim/iterations/history.h"

namespace shim::iterations {

inline constexpr char kStreamMagic[8] = {'L', 'N', 'W', 'O', 'P', 'S', '1', '\n'};

struct StreamRecord {
  uint32_t identity = 0;
  uint32_t shape = 0;
  uint32_t flags = 0;  // 1: computes, 2: synced, 4: the program marked an iteration's begin
  uint32_t reserved = 0;
  uint64_t live_bytes = 0;
};
static_assert(sizeof(StreamRecord) == 24);

struct RecordedOp {
  Op op;
  bool marked = false;
};

StreamRecord RecordOf(const Op& op, bool marked);

// Nothing unless the bytes are exactly one stream of this version. A record that was cut off at the
// end (the program was killed) is left out.
std::optional<std::vector<RecordedOp>> DecodeStreamUntrusted(std::span<const std::byte> bytes);

}  // namespace shim::iterations
