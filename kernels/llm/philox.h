// Random numbers by counting: Philox4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as
// 1, 2, 3, SC 2011). A number is a function of the request's seed, the token's position and the
// answer's number alone, so it is the same in any batch and after a restart. For the kernels and
// their reference alike.
#pragma once

#include <cstdint>

#include "kernels/llm/arguments.h"
#include "kernels/llm/step_place.h"

namespace kernels::llm {

struct Philox {
  uint32_t counter[4];
  uint32_t key[2];

  KERNELS_BOTH void Round() {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0];
    const uint64_t second = uint64_t{0xCD9E8D57} * counter[2];
    const uint32_t next[4] = {
        static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    for (int i = 0; i < 4; ++i) counter[i] = next[i];
  }
  // The counter becomes the random numbers.
  KERNELS_BOTH void Run() {
    constexpr int kRounds = 10;
    for (int round = 0; round < kRounds; ++round) {
      Round();
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
  }
};

// The number that a row's token is drawn with.
KERNELS_BOTH inline uint64_t RandomOf(const SamplingRow& row) {
  Philox philox = {{static_cast<uint32_t>(row.position), static_cast<uint32_t>(row.copy), 0, 0},
                   {static_cast<uint32_t>(row.seed), static_cast<uint32_t>(row.seed >> 32)}};
  philox.Run();
  return uint64_t{philox.counter[1]} << 32 | philox.counter[0];
}

}  // namespace kernels::llm
