// Stream assignment by cost: list scheduling of the longest remaining path first, on the model of
// device_model.h.
//
// Whenever a stream is free, it gets the ready operation with the longest path to the end, in times
// and launches. A free stream of one of the operation's predecessors is taken first: this saves a
// wait. With `fills`, no operation starts while the device is full: a hurried one then need not
// share the device.
// Nimble's assignment knows no costs and has all the concurrency there is. Fewer streams take less
// time where the front end is the bottleneck: an operation on the longest path then stands behind
// fewer others. Thread safety: pure functions.
#pragma once

#include <vector>

#include "scheduler/streams/assignment.h"
#include "scheduler/streams/dag.h"
#include "scheduler/streams/device_model.h"

namespace scheduler::streams {

struct ListRule {
  int streams_max = 1;  // at least 1
  bool fills = false;   // no operation starts while submitted ones can use the whole device
  double front_end_ns = 0;
};

Placement PlaceByList(const Dag& dag, const std::vector<Cost>& costs, const ListRule& rule);

}  // namespace scheduler::streams
