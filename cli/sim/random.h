// Random numbers that are the same on every machine for the same seed: the standard's engines are
// specified to the bit, its distributions are not. Thread safety: one thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace sim {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // [0, 1)
  double Between(double low, double high) { return low + (high - low) * Uniform(); }
  size_t Index(size_t size) { return static_cast<size_t>(Uniform() * static_cast<double>(size)); }
  double Exponential(double mean) { return -mean * std::log1p(-Uniform()); }

  double Normal() {  // Box and Muller; the second of the pair is thrown away for simplicity's sake
    const double radius = std::sqrt(-2 * std::log1p(-Uniform()));
    return radius * std::cos(6.283185307179586 * Uniform());
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sim
