// Random sizes and choices for the tests of the arena.
#pragma once

#include <cstdint>
#include <random>

namespace shim_arena_test {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // In [low, high].
  uint64_t In(uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(engine_);
  }
  bool OneIn(uint64_t n) { return In(1, n) == 1; }
  // Many small sizes, few large ones.
  uint64_t Size(int bits_max) {
    return In(1, uint64_t{1} << In(0, static_cast<uint64_t>(bits_max)));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace shim_arena_test
