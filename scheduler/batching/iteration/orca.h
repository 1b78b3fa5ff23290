// Mode `orca`: Algorithm 2 of Orca (section 4.3.2), line by line.
//
// Each step takes the first max_bs requests by arrival that no step in flight has. A request that
// begins reserves K/V slots for all tokens that it can ever have; when they are not there, the scan
// ends. So nothing is preempted, and a request that came earlier has run as many iterations or
// more. What is ours: slots come in blocks of kBlockTokens, so a reservation is rounded up to whole
// blocks; where the paper's loop would send an empty batch, the next event is waited for; a request
// that engines died of runs alone. The keys may have another order than arrival.
// Thread safety: one thread at a time.
#pragma once

#include "scheduler/batching/iteration/state.h"

namespace scheduler::batching::iteration {

class Orca : public Mode {
 public:
  const char* name() const override { return "orca"; }
  void Select(State* state, Step* step) override;
  int32_t BlocksToBegin(const State& state, const Sequence& sequence) const override;
};

}  // namespace scheduler::batching::iteration
