#include "scheduler/streams/dependencies.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace scheduler::streams {

NodeId Dependencies::Next() {
  followed_.push_back(false);
  return operations_++;
}

void Dependencies::Depend(NodeId node, NodeId on) {
  if (on == kNoNode || on == node) return;
  if (!edges_.empty() && edges_.back().from == on && edges_.back().to == node) return;
  edges_.push_back({on, node});
  followed_[At(on)] = true;
}

NodeId Dependencies::Add(const std::vector<Touch>& touches) {
  const NodeId node = Next();
  const size_t edges_before = edges_.size();
  // Reads first: a write of the same operation then finds them, and all before them.
  for (const Touch& touch : touches) {
    assert(touch.range.end() >= touch.range.begin);
    if (touch.access != Access::kWrite) Read(node, touch.range);
  }
  for (const Touch& touch : touches) {
    if (touch.access != Access::kRead) Write(node, touch.range);
  }
  // Any other edge comes from an operation after the barrier.
  if (edges_.size() == edges_before) Depend(node, barrier_);
  return node;
}

NodeId Dependencies::AddBarrier() {
  const NodeId node = Next();
  for (NodeId other = std::max(barrier_, 0); other < node; ++other) {
    if (!followed_[At(other)]) Depend(node, other);
  }
  barrier_ = node;
  stretches_.clear();
  return node;
}

// Makes a stretch that contains the address end there, and another begin.
void Dependencies::SplitAt(uint64_t address) {
  Stretches::iterator next = stretches_.lower_bound(address);
  if (next == stretches_.begin()) return;
  Stretch& stretch = std::prev(next)->second;
  if (stretch.end <= address) return;
  stretches_.emplace_hint(next, address, stretch);
  stretch.end = address;
}

void Dependencies::Read(NodeId node, const Range& range) {
  if (range.bytes == 0) return;
  SplitAt(range.begin);
  SplitAt(range.end());
  uint64_t address = range.begin;
  while (address < range.end()) {
    const Stretches::iterator next = stretches_.lower_bound(address);
    const bool known = next != stretches_.end() && next->first == address;
    if (!known) {  // nothing has touched what lies before the next stretch
      const uint64_t end = next == stretches_.end() ? range.end() : next->first;
      const Stretch fresh = {std::min(end, range.end()), kNoNode, {node}};
      stretches_.emplace_hint(next, address, fresh);
      address = fresh.end;
      continue;
    }
    Stretch& stretch = next->second;
    Depend(node, stretch.writer);
    if (stretch.readers.empty() || stretch.readers.back() != node) stretch.readers.push_back(node);
    address = stretch.end;
  }
}

void Dependencies::Write(NodeId node, const Range& range) {
  if (range.bytes == 0) return;
  SplitAt(range.begin);
  SplitAt(range.end());
  const Stretches::iterator begin = stretches_.lower_bound(range.begin);
  const Stretches::iterator end = stretches_.lower_bound(range.end());
  for (Stretches::iterator each = begin; each != end; ++each) {
    for (const NodeId reader : each->second.readers) Depend(node, reader);
    // Readers come after the writer themselves.
    if (each->second.readers.empty()) Depend(node, each->second.writer);
  }
  stretches_.erase(begin, end);
  stretches_.emplace(range.begin, Stretch{range.end(), node, {}});
}

}  // namespace scheduler::streams
