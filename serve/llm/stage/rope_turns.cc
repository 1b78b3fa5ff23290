#include "serve/llm/stage/rope_turns.h"

#include <cmath>

namespace serve::llm {

std::vector<float> RopeTurns(const ModelSizes& sizes, int32_t positions,
                             std::span<const float> factors) {
  const size_t pairs = sizes.rope_width / 2;
  std::vector<float> turns;
  turns.reserve(static_cast<size_t>(positions) * pairs * 2);
  for (int32_t position = 0; position < positions; ++position) {
    for (size_t i = 0; i < pairs; ++i) {
      const double exponent = 2 * static_cast<double>(i) / static_cast<double>(sizes.rope_width);
      const double factor = factors.empty() ? 1 : static_cast<double>(factors[i]);
      const double angle = position / (std::pow(sizes.rope_base, exponent) * factor);
      turns.push_back(static_cast<float>(std::cos(angle)));
      turns.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return turns;
}

}  // namespace serve::llm
