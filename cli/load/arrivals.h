// When requests are sent. Pure. Thread safety: stateless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/sim/random.h"

namespace load {

// Times from the first request's, ascending: gaps follow a gamma distribution with a mean of
// 1 / per_s and the shape `burstiness`. 1: Poisson arrivals; below 1: bursts; above 1: more even;
// infinite: all gaps alike. An infinite per_s sends all at once.
// REQUIRES: per_s > 0, burstiness > 0.
std::vector<int64_t> ArrivalsUs(size_t count, double per_s, double burstiness, sim::Random* random);

}  // namespace load
