#include "graphs/plan.h"

namespace graphs {

Difference Compare(const std::vector<StepShape>& before, const std::vector<StepShape>& after,
                   size_t* at) {
  *at = std::max(before.size(), after.size());
  if (before.size() != after.size()) return Difference::kTopology;
  for (size_t i = 0; i < before.size(); ++i) {
    *at = i;
    if (before[i].dependencies != after[i].dependencies) return Difference::kTopology;
    const bool same = before[i].type == after[i].type && before[i].kind == after[i].kind &&
                      before[i].bodies == after[i].bodies;
    if (!same) return Difference::kType;
  }
  *at = before.size();
  return Difference::kNone;
}

}  // namespace graphs
