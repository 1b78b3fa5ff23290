#include "shim/iterations/bodies.h"

namespace shim::iterations {

int Bodies::FindSame(uint64_t hash, size_t count) const {
  for (size_t i = 0; i < bodies_.size(); ++i) {
    const Body& body = bodies_[i];
    if (body.id != 0 && body.size() == count && body.prefix[count] == hash)
      return static_cast<int>(i);
  }
  return kNone;
}

void Bodies::Forget(int index) {
  Body& body = bodies_[static_cast<size_t>(index)];
  ops_ -= body.size();
  --count_;
  body = Body();
}

void Bodies::Clear() {
  for (size_t i = 0; i < bodies_.size(); ++i) {
    if (bodies_[i].id != 0) Forget(static_cast<int>(i));
  }
  FindUniqueStarts();
}

// A free place for `count` more operations.
int Bodies::Room(size_t count) {
  if (count == 0 || count > kOpsMax / 4) return kNone;
  while (count_ == kMax || ops_ + count > kOpsMax) {
    int oldest = kNone;
    for (size_t i = 0; i < bodies_.size(); ++i) {
      if (bodies_[i].id == 0) continue;
      if (oldest == kNone || bodies_[i].last_use < at(oldest).last_use)
        oldest = static_cast<int>(i);
    }
    Forget(oldest);
  }
  for (size_t i = 0; i < bodies_.size(); ++i) {
    if (bodies_[i].id == 0) return static_cast<int>(i);
  }
  bodies_.emplace_back();
  return static_cast<int>(bodies_.size()) - 1;
}

int Bodies::Learn(const History& history, uint64_t begin, uint64_t count) {
  Body made;
  made.prefix.push_back(0);
  for (uint64_t i = 0; i < count && count <= kOpsMax / 4; ++i) {
    const uint32_t identity = history.identity(begin + i);
    made.ops.push_back(identity);
    made.synced.push_back(history.synced(begin + i));
    made.prefix.push_back(History::Extend(made.prefix.back(), identity));
  }
  if (made.size() != count) return kNone;
  if (const int same = FindSame(made.prefix.back(), made.size()); same != kNone) return same;
  const int index = Room(count);
  if (index == kNone) return kNone;
  made.id = ++made_;
  made.synced_start = made.synced[0];
  made.last_use = ++uses_;
  ops_ += made.size();
  ++count_;
  bodies_[static_cast<size_t>(index)] = std::move(made);
  FindUniqueStarts();
  return index;
}

void Bodies::Use(int index) {
  Body& body = bodies_[static_cast<size_t>(index)];
  body.last_use = ++uses_;
  ++body.uses;
}

// Quadratic in nothing: bodies x operations, when one is learned.
void Bodies::FindUniqueStarts() {
  starts_ = 0;
  for (Body& body : bodies_) {
    if (body.id == 0) continue;
    starts_ |= uint64_t{1} << (body.ops[0] & 63);
    body.unique_start = true;
    body.unique_synced_start = body.synced_start;
    for (const Body& other : bodies_) {
      for (size_t i = 1; i < other.size(); ++i) {
        if (other.ops[i] != body.ops[0]) continue;
        body.unique_start = false;
        if (other.synced[i]) body.unique_synced_start = false;
      }
    }
  }
}

int Bodies::Starting(uint32_t identity) const {
  int best = kNone;
  for (size_t i = 0; i < bodies_.size(); ++i) {
    const Body& body = bodies_[i];
    if (body.id == 0 || body.ops[0] != identity) continue;
    if (best == kNone || body.uses > at(best).uses) best = static_cast<int>(i);
  }
  return best;
}

bool Bodies::AlwaysStarts(const Op& op) const {
  for (const Body& body : bodies_) {
    if (body.id == 0 || body.ops[0] != op.identity) continue;
    if (body.unique_start || (op.synced && body.unique_synced_start)) return true;
  }
  return false;
}

int Bodies::WithPrefix(size_t count, uint64_t hash) const {
  int best = kNone;
  for (size_t i = 0; i < bodies_.size(); ++i) {
    const Body& body = bodies_[i];
    if (body.id == 0 || body.size() < count || body.prefix[count] != hash) continue;
    if (best == kNone || body.uses > at(best).uses) best = static_cast<int>(i);
  }
  return best;
}

}  // namespace shim::iterations
