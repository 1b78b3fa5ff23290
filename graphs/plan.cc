#include "graphs/plan.h"

namespace graphs {

Difference Compare(const std::vector<StepShape>& before, const std::vector<StepShape>& after,
                   size_t* at) {
  *at = std::max(before.size(), after.size());
  if (before.size() != after.size()) return Difference::kTopology;
  for (size_t i = 0; i < before.size(); ++i) {
    *at = i;
    if (before[i].dependencies != after[i].dependencies) return Difference::kTopology;
    if (before[i].type != after[i].type) return Difference::kType;
  }
  *at = before.size();
  return Difference::kNone;
}

}  // namespace graphs
