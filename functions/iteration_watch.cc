#include "functions/iteration_watch.h"

namespace functions {

void IterationWatch::OnCall(uint64_t token, bool boundary) {
  if (boundary) {
    ++iterations_;
    repeats_ = current_ == last_ ? repeats_ + 1 : 1;
    last_ = current_;
    current_ = {};
  }
  ++current_.calls;
  current_.hash = (current_.hash ^ token) * 0x9e3779b97f4a7c15;
  current_.hash ^= current_.hash >> 29;
}

}  // namespace functions
