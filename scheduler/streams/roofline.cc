#include "scheduler/streams/roofline.h"

#include <algorithm>
#include <cassert>

namespace scheduler::streams {

Cost CostOf(const Work& work, const Roofline& device) {
  assert(work.blocks >= 1 && work.blocks_at_once >= 1);
  const double arithmetic_ns =
      static_cast<double>(work.multiply_accumulates) / device.multiply_accumulates_a_ns;
  const double traffic_ns = static_cast<double>(work.bytes) / device.bytes_a_ns;
  const double share = static_cast<double>(work.blocks) / static_cast<double>(work.blocks_at_once);
  Cost cost;
  cost.share = std::min(share, 1.0);
  cost.time_ns = std::max(arithmetic_ns, traffic_ns) / cost.share;
  cost.launch_ns = device.launch_ns;
  return cost;
}

}  // namespace scheduler::streams
