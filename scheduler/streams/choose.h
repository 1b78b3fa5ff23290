// Chooses an iteration's assignment: one stream, Nimble's, or one by cost.
//
// The choice takes the least time under the model of device_model.h. So no iteration is slower
// there than on one stream or with Nimble's assignment. Among equal times one stream comes before
// Nimble's, and Nimble's before those by cost. Thread safety: pure functions.
#pragma once

#include <vector>

#include "scheduler/streams/assignment.h"
#include "scheduler/streams/dag.h"
#include "scheduler/streams/device_model.h"
#include "scheduler/streams/nimble.h"

namespace scheduler::streams {

enum class Algorithm { kOneStream, kNimble, kList };

struct Choice {
  Algorithm algorithm = Algorithm::kOneStream;
  Assignment assignment;
  double makespan_ns = 0;
};

// REQUIRES: a cost for each node; streams_max >= 1.
Choice Choose(const Dag& dag, const std::vector<Cost>& costs, double front_end_ns,
              int streams_max = kNoCap);

}  // namespace scheduler::streams
