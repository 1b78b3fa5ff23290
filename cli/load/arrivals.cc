#include "cli/load/arrivals.h"

#include <cmath>

namespace load {
namespace {

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): a cube of a normal
// number, taken or not. A shape below 1 is that of one more, times a power of a uniform number.
double Gamma(double shape, sim::Random* random) {
  if (shape < 1) {
    const double power = std::pow(1 - random->Uniform(), 1 / shape);
    return Gamma(shape + 1, random) * power;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double normal = random->Normal();
    const double root = 1 + c * normal;
    if (root <= 0) continue;
    const double cube = root * root * root;
    const double uniform = 1 - random->Uniform();
    if (std::log(uniform) < normal * normal / 2 + d - d * cube + d * std::log(cube)) {
      return d * cube;
    }
  }
}

}  // namespace

std::vector<int64_t> ArrivalsUs(size_t count, double per_s, double burstiness,
                                sim::Random* random) {
  std::vector<int64_t> arrivals(count, 0);
  if (std::isinf(per_s)) return arrivals;
  double at_s = 0;
  for (size_t i = 1; i < count; ++i) {
    at_s += std::isinf(burstiness) ? 1 / per_s : Gamma(burstiness, random) / burstiness / per_s;
    arrivals[i] = static_cast<int64_t>(at_s * 1e6);
  }
  return arrivals;
}

}  // namespace load
