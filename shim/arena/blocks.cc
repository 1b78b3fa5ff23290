#include "shim/arena/blocks.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace shim::arena {

Blocks::Blocks() {
  for (Index(&list)[kSeconds] : heads_) std::fill(std::begin(list), std::end(list), kNone);
}

// Up to 15 units have a class each; beyond, each power of two is divided into 16.
void Blocks::ClassOf(uint32_t units, int* first, int* second) {
  if (units < kSeconds) {
    *first = 0;
    *second = static_cast<int>(units);
    return;
  }
  const int top = std::bit_width(units) - 1;
  *first = top - kSecondBits + 1;
  *second = static_cast<int>(units >> (top - kSecondBits)) & (kSeconds - 1);
}

// A block of the request's own class may be too small: look at a few. Of every higher class each
// one fits.
Blocks::Index Blocks::Fit(uint32_t units) const {
  int first = 0, second = 0;
  ClassOf(units, &first, &second);
  Index index = heads_[first][second];
  for (int i = 0; i < kLooks && index != kNone; ++i, index = nodes_[index].next) {
    if (nodes_[index].units >= units) return index;
  }
  const uint32_t seconds =
      second + 1 < kSeconds ? second_map_[first] & (~uint32_t{0} << (second + 1)) : 0;
  if (seconds != 0) return heads_[first][std::countr_zero(seconds)];
  const uint32_t firsts = first + 1 < kFirsts ? first_map_ & (~uint32_t{0} << (first + 1)) : 0;
  if (firsts == 0) return kNone;
  const int higher = std::countr_zero(firsts);
  return heads_[higher][std::countr_zero(second_map_[higher])];
}

Blocks::Index Blocks::NewNode() {
  if (spare_.empty()) {
    nodes_.emplace_back();
    nodes_.back().is_used = true;
    return static_cast<Index>(nodes_.size() - 1);
  }
  const Index index = spare_.back();
  spare_.pop_back();
  nodes_[index] = Node{};
  nodes_[index].is_used = true;
  return index;
}

void Blocks::DropNode(Index index) {
  nodes_[index].is_used = false;
  spare_.push_back(index);
}

void Blocks::Link(Index index) {
  Node& node = nodes_[index];
  int first = 0, second = 0;
  ClassOf(node.units, &first, &second);
  Index& head = heads_[first][second];
  node.is_free = true;
  node.last = kNone;
  node.next = head;
  if (head != kNone) nodes_[head].last = index;
  head = index;
  first_map_ |= uint32_t{1} << first;
  second_map_[first] |= uint32_t{1} << second;
}

void Blocks::Unlink(Index index) {
  Node& node = nodes_[index];
  node.is_free = false;
  if (node.next != kNone) nodes_[node.next].last = node.last;
  if (node.last != kNone) {
    nodes_[node.last].next = node.next;
    return;
  }
  int first = 0, second = 0;
  ClassOf(node.units, &first, &second);
  heads_[first][second] = node.next;
  if (node.next != kNone) return;
  second_map_[first] &= ~(uint32_t{1} << second);
  if (second_map_[first] == 0) first_map_ &= ~(uint32_t{1} << first);
}

// Two neighbours, neither in a list, become the left one.
Blocks::Index Blocks::Join(Index left, Index right) {
  Node& to = nodes_[left];
  const Node& from = nodes_[right];
  to.units += from.units;
  to.after = from.after;
  to.stamp = Merge(to.stamp, from.stamp);
  if (from.after != kNone) nodes_[from.after].before = left;
  DropNode(right);
  return left;
}

void Blocks::AddRange(Range range, Stamp stamp) {
  assert(range.base % kAlignment == 0 && range.bytes % kAlignment == 0 && range.bytes != 0);
  const Index index = NewNode();
  nodes_[index].base = range.base;
  nodes_[index].units = static_cast<uint32_t>(range.bytes / kAlignment);
  nodes_[index].stamp = stamp;
  total_bytes_ += range.bytes;
  Link(index);
}

Blocks::Index Blocks::FirstOf(uint64_t base) const {
  for (Index i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].is_used && nodes_[i].base == base && nodes_[i].before == kNone) return i;
  }
  return kNone;
}

void Blocks::RemoveRange(uint64_t base, Stamp* stamp) {
  const Index index = FirstOf(base);
  assert(index != kNone && nodes_[index].is_free && nodes_[index].after == kNone);
  *stamp = nodes_[index].stamp;
  total_bytes_ -= nodes_[index].units * kAlignment;
  Unlink(index);
  DropNode(index);
}

bool Blocks::Take(uint64_t bytes, Taken* taken) {
  assert(bytes > 0);
  const uint64_t wanted = RoundUp(bytes, kAlignment) / kAlignment;
  if (wanted > total_bytes_ / kAlignment) return false;
  const uint32_t units = static_cast<uint32_t>(wanted);
  const Index index = Fit(units);
  if (index == kNone) return false;
  Unlink(index);
  const bool opened = nodes_[index].before == kNone && nodes_[index].after == kNone;
  if (nodes_[index].units > units) {
    const Index rest = NewNode();
    Node& node = nodes_[index];
    nodes_[rest].base = node.base + units * kAlignment;
    nodes_[rest].units = node.units - units;
    nodes_[rest].stamp = node.stamp;
    nodes_[rest].before = index;
    nodes_[rest].after = node.after;
    if (node.after != kNone) nodes_[node.after].before = rest;
    node.after = rest;
    node.units = units;
    Link(rest);
  }
  live_bytes_ += units * kAlignment;
  *taken = {index, nodes_[index].base, units * kAlignment, nodes_[index].stamp, opened};
  return true;
}

bool Blocks::Give(Index index, Stamp stamp, Range* range) {
  assert(index < nodes_.size() && nodes_[index].is_used && !nodes_[index].is_free);
  nodes_[index].stamp = stamp;
  live_bytes_ -= nodes_[index].units * kAlignment;
  const Index after = nodes_[index].after;
  if (after != kNone && nodes_[after].is_free) {
    Unlink(after);
    Join(index, after);
  }
  const Index before = nodes_[index].before;
  if (before != kNone && nodes_[before].is_free) {
    Unlink(before);
    index = Join(before, index);
  }
  Link(index);
  const Node& node = nodes_[index];
  *range = {node.base, node.units * kAlignment};
  return node.before == kNone && node.after == kNone;
}

void Blocks::Canonicalize() {
  std::vector<Index> all;
  for (Index i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].is_used && nodes_[i].is_free) all.push_back(i);
  }
  for (const Index index : all) Unlink(index);
  // The list is last in, first out: the lowest address comes last.
  std::sort(all.begin(), all.end(),
            [this](Index a, Index b) { return nodes_[a].base > nodes_[b].base; });
  for (const Index index : all) Link(index);
}

uint64_t Blocks::LiveEnd() const {
  uint64_t end = 0;
  for (const Node& node : nodes_) {
    if (node.is_used && !node.is_free) end = std::max(end, node.base + node.units * kAlignment);
  }
  return end;
}

}  // namespace shim::arena
