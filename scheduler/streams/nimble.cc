#include "scheduler/streams/nimble.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>
#include <utility>

#include "scheduler/streams/matching.h"
#include "scheduler/streams/reduction.h"

namespace scheduler::streams {
namespace {

// Each chain of linked nodes is a stream.
std::vector<int> Follow(const Matching& matching) {
  std::vector<int> stream(matching.before.size());
  int streams = 0;
  for (size_t node = 0; node < stream.size(); ++node) {
    const NodeId before = matching.before[node];
    stream[node] = before == kNoNode ? streams++ : stream[At(before)];
  }
  return stream;
}

// Folds streams past the cap.
void Fold(int streams_max, std::vector<int>* stream) {
  const int streams = stream->empty() ? 0 : *std::max_element(stream->begin(), stream->end()) + 1;
  if (streams <= streams_max) return;
  std::vector<int> lengths(At(streams));
  for (const int one : *stream) ++lengths[At(one)];
  std::vector<int> longest_first(lengths.size());
  std::iota(longest_first.begin(), longest_first.end(), 0);
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&lengths](int a, int b) { return lengths[At(a)] > lengths[At(b)]; });
  // A heap of the streams that stay, that with the fewest nodes on top.
  std::vector<std::pair<int, int>> kept;  // how many nodes, on which stream
  kept.reserve(At(streams_max));
  for (int one = 0; one < streams_max; ++one) kept.push_back({0, one});
  std::vector<int> becomes(lengths.size());
  for (const int one : longest_first) {
    std::pop_heap(kept.begin(), kept.end(), std::greater<>());
    becomes[At(one)] = kept.back().second;
    kept.back().first += lengths[At(one)];
    std::push_heap(kept.begin(), kept.end(), std::greater<>());
  }
  for (int& one : *stream) one = becomes[At(one)];
}

}  // namespace

Assignment AssignNimble(const Dag& dag, int streams_max) {
  assert(streams_max >= 1);
  if (streams_max == 1) return Synchronise(dag, OneStream(dag));
  const Reduction reduction = Reduce(dag);
  Matching matching = MaximumMatching(reduction.minimal);
  Extend(reduction, &matching);
  std::vector<int> stream = Follow(matching);
  Fold(streams_max, &stream);
  std::vector<NodeId> order(stream.size());
  std::iota(order.begin(), order.end(), 0);
  return Synchronise(reduction.minimal, {std::move(stream), std::move(order)});
}

}  // namespace scheduler::streams
