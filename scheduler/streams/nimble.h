// Nimble's stream assignment: as much concurrency as the graph has, with the fewest
// synchronisations, then the fewest streams (Nimble, algorithm 1 and its appendix).
//
// Maximum logical concurrency: two nodes share a stream only if a path leads from one to the other.
// Among such assignments, a maximum matching M of the minimum equivalent graph's E' edges gives the
// fewest synchronisations, |E'| - |M|. The paper gives each chain of matched edges its own stream.
// Here a chain may follow another chain on one stream, if a path leads from the end of the first to
// the start of the second. This costs no concurrency and no synchronisation; matching.h says how as
// many chains as possible follow others. Streams are then mostly as many as the graph is wide. Some
// graphs have no assignment with both the fewest synchronisations and the fewest streams:
// synchronisations win.
//
// With a cap, streams past the cap are folded: the longest first, each joins the stream with the
// fewest nodes so far. Nodes of one stream run in program order, and waits that this order makes
// needless go. Concurrency is lost; the result is valid for every cap, and one stream for a cap
// of 1. Thread safety: pure functions.
#pragma once

#include <limits>

#include "scheduler/streams/assignment.h"
#include "scheduler/streams/dag.h"

namespace scheduler::streams {

constexpr int kNoCap = std::numeric_limits<int>::max();

// Assigns streams; nodes are issued in program order. REQUIRES: streams_max >= 1.
Assignment AssignNimble(const Dag& dag, int streams_max = kNoCap);

}  // namespace scheduler::streams
