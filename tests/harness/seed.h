// The seed of a random test: printed, so that a failure can be seen again with LANEWAY_TEST_SEED=N.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace harness {

inline uint64_t Seed() {
  const char* const given = std::getenv("LANEWAY_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("seed %llu (repeat with LANEWAY_TEST_SEED)\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace harness
