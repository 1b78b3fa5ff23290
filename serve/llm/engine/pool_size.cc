#include "serve/llm/engine/pool_size.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/llm/arguments.h"

namespace serve::llm {

absl::StatusOr<int32_t> PoolBlocks(const PoolWish& wish, uint64_t free_bytes,
                                   uint64_t block_bytes) {
  constexpr uint64_t kTokens = kernels::llm::kBlockTokens;
  const uint64_t needed = (static_cast<uint64_t>(wish.context_max) + kTokens - 1) / kTokens;
  const uint64_t most = std::min<uint64_t>(needed * static_cast<uint64_t>(wish.requests_max),
                                           std::numeric_limits<int32_t>::max() / kTokens);
  uint64_t blocks = static_cast<uint64_t>(wish.blocks);
  if (wish.blocks == 0 && wish.bytes > 0)
    blocks =
        std::min<uint64_t>(wish.bytes / block_bytes, std::numeric_limits<int32_t>::max() / kTokens);
  if (wish.blocks == 0 && wish.bytes == 0)
    blocks = std::min(free_bytes / kPoolShareDivisor / block_bytes, most);
  if (blocks >= needed && blocks > 0) return static_cast<int32_t>(blocks);
  return absl::ResourceExhaustedError(absl::StrCat(
      "keys and values have room for ", blocks * kTokens, " tokens, and a request may have ",
      wish.context_max, "; give them more memory (--kv-blocks=", needed, " is ",
      needed * block_bytes, " bytes), or say --context=N for shorter requests"));
}

}  // namespace serve::llm
