// How well a detector finds the boundaries of a labelled op stream.
//
// A boundary is right when it lies before the labelled operation itself, or when no operation that
// computes lies between the two (results are read back before or after the mark: nobody can tell).
// Each label is found once. Lock-on is the first right boundary after which the next two boundaries
// are right, too; precision and recall count from there, the overall ones from the stream's begin.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "shim/iterations/stream.h"

namespace iterations_test {

struct Quality {
  size_t ops = 0, labels = 0, boundaries = 0;
  size_t all_right = 0;
  size_t after_labels = 0, after_boundaries = 0;  // after lock-on, itself included
  size_t right = 0, exact = 0;                    // of those
  size_t bodies = 0;
  // Iterations from the end of the first two equal rounds (by the labels) to lock-on; 0 or less
  // when it came before.
  long lock_delay = 0;
  bool locked = false;

  double precision() const {
    return after_boundaries == 0 ? 0 : double(right) / double(after_boundaries);
  }
  double overall_precision() const {
    return boundaries == 0 ? 0 : double(all_right) / double(boundaries);
  }
  double recall() const { return after_labels == 0 ? 0 : double(right) / double(after_labels); }
};

Quality Measure(const std::vector<shim::iterations::RecordedOp>& ops);

// The streams of tests/data/op_streams: names, and whether they are unseen.
struct StreamName {
  std::string name;
  bool unseen = false;
};
std::vector<StreamName> AllStreams();
std::vector<shim::iterations::RecordedOp> ReadStream(const std::string& name);

}  // namespace iterations_test
