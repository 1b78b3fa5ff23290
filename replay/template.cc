#include "replay/template.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace replay {
namespace {

// Fewer operations at the end of a body are no reason to split it: many bodies end with the same
// copy to the host.
constexpr size_t kSharedOpsMin = 4;

size_t BytesOf(const Body& body) {
  return body.ops.argument_bytes() + body.ops.size() * (sizeof(OpKey) + sizeof(uint32_t)) +
         body.patches.size() * sizeof(Patch) + sizeof(Body);
}

unsigned StartBit(const OpKey& key) { return (key.callee * 5 + key.stream) % 64; }

// Where the row of operations from `begin` on is cut at the latest.
size_t RowEnd(const OpStream& ops, size_t begin, size_t most) {
  size_t end = begin + 1;
  while (end < ops.size() && end - begin < most && !ops.key(end).waited) ++end;
  return end;
}

size_t EqualAtEnd(const OpStream& known, const OpStream& ops, size_t begin, size_t end) {
  const size_t most = std::min(known.size(), end - begin);
  size_t equal = 0;
  while (equal < most && known.key(known.size() - 1 - equal) == ops.key(end - 1 - equal)) ++equal;
  return equal;
}

}  // namespace

Template::Template(const Callees* callees, const Limits& limits)
    : callees_(callees), limits_(limits), nodes_(1) {}

size_t Template::bytes() const {
  size_t bytes = 0;
  for (const Node& node : nodes_) bytes += node.body == nullptr ? 0 : BytesOf(*node.body);
  return bytes;
}

Template::Place Template::Next(Place place, const OpKey& key) const {
  for (const Place next : nodes_[place].next) {
    if (nodes_[next].body->ops.key(0) == key) return next;
  }
  return kNowhere;
}

Template::Place Template::Anywhere(const OpKey& key) const {
  if ((starts_ >> StartBit(key) & 1) == 0) return kNowhere;
  Place best = kNowhere;
  for (Place place = 1; place < nodes_.size(); ++place) {
    const Body* const body = nodes_[place].body.get();
    if (body == nullptr || body->ops.key(0) != key || !IsReady(place)) continue;
    if (best == kNowhere || body->ops.size() > nodes_[best].body->ops.size()) best = place;
  }
  return best;
}

// --- learning ------------------------------------------------------------------------------------

void Template::Learn(const OpStream& iteration) {
  ++iterations_;
  Place place = kBegin;
  for (size_t i = 0; i < iteration.size();) {
    Place next = Next(place, iteration.key(i));
    if (next == kNowhere) {
      if (bodies_ >= 2 * limits_.bodies) break;  // the rest would not stay
      next = Link(&place, iteration, i);
    }
    const size_t equal = EqualKeys(*nodes_[next].body, iteration, i);
    if (equal < nodes_[next].body->ops.size()) Split(next, equal);
    Compare(next, iteration, i);
    i += equal;
    place = next;
  }
  Trim();
}

// Makes a body that begins like the row from `begin` on come after `*from`. A split may move the
// end of the body at `*from`, and `*from` with it.
Template::Place Template::Link(Place* from, const OpStream& ops, size_t begin) {
  Place next = FindBegin(ops, begin);
  if (next == kNowhere) {
    const size_t end = RowEnd(ops, begin, limits_.body_ops);
    const Shared shared = FindShared(ops, begin, end);
    if (shared.ops < end - begin) {
      Body body;
      body.ops = ops.Slice(begin, end - shared.ops);
      next = Add(std::move(body));
    } else {  // the body ends with the row, and is longer
      next = Split(shared.place, nodes_[shared.place].body->ops.size() - shared.ops);
      if (*from == shared.place) *from = next;
    }
  }
  nodes_[*from].next.push_back(next);
  ++version_;
  return next;
}

// The body that begins with most operations from `begin` on.
Template::Place Template::FindBegin(const OpStream& ops, size_t begin) const {
  Place best = kNowhere;
  size_t most = 0;
  for (Place place = 1; place < nodes_.size(); ++place) {
    if (nodes_[place].body == nullptr) continue;
    const size_t equal = EqualKeys(*nodes_[place].body, ops, begin);
    const bool whole = equal == nodes_[place].body->ops.size();
    if (equal <= most || (!whole && equal < kSharedOpsMin)) continue;
    best = place;
    most = equal;
  }
  return best;
}

// The body that shares most operations with the end of the row.
Template::Shared Template::FindShared(const OpStream& ops, size_t begin, size_t end) const {
  Shared best;
  for (Place place = 1; place < nodes_.size(); ++place) {
    if (nodes_[place].body == nullptr) continue;
    const OpStream& known = nodes_[place].body->ops;
    const size_t equal = EqualAtEnd(known, ops, begin, end);
    if (equal > best.ops && (equal == known.size() || equal >= kSharedOpsMin))
      best = {place, equal};
  }
  return best;
}

Template::Place Template::Add(Body body) {
  body.id = ++last_id_;
  Place place = 1;
  while (place < nodes_.size() && nodes_[place].body != nullptr) ++place;
  if (place == nodes_.size()) nodes_.emplace_back();
  starts_ |= uint64_t{1} << StartBit(body.ops.key(0));
  nodes_[place].body = std::make_shared<const Body>(std::move(body));
  ++bodies_;
  return place;
}

// The place keeps the first `at` operations; the rest, with all that follows, is at the place that
// is returned.
Template::Place Template::Split(Place place, size_t at) {
  const std::shared_ptr<const Body> whole = nodes_[place].body;
  const Place rest = Add(PartOf(*whole, at, whole->ops.size(), 0));
  Node& first = nodes_[place];
  Node& second = nodes_[rest];
  second.next = std::exchange(first.next, {rest});
  second.occurrences = first.occurrences;
  second.last_use = first.last_use;
  first.body = std::make_shared<const Body>(PartOf(*whole, 0, at, ++last_id_));
  ++version_;
  return rest;
}

void Template::Compare(Place place, const OpStream& ops, size_t begin) {
  Node& node = nodes_[place];
  node.last_use = iterations_;
  if (node.occurrences < kReadyOccurrences) ++node.occurrences;
  const std::vector<Patch> more = DifferencesOf(*node.body, ops, begin, *callees_);
  if (more.empty()) return;
  node.body = std::make_shared<const Body>(WithPatches(*node.body, more, ++last_id_));
  ++version_;
}

// --- forgetting ----------------------------------------------------------------------------------

// Of bodies that were passed last by the same iteration, those at higher places go first: they are
// more likely to be its end, and a beginning is useful alone.
void Template::Trim() {
  while (bodies_ > limits_.bodies || bytes() > limits_.bytes) {
    Place oldest = kNowhere;
    for (Place place = 1; place < nodes_.size(); ++place) {
      if (nodes_[place].body == nullptr) continue;
      if (oldest == kNowhere || nodes_[place].last_use <= nodes_[oldest].last_use) oldest = place;
    }
    std::vector<BodyId> dropped;
    Remove({oldest}, &dropped);
  }
}

void Template::Free(Place place, std::vector<BodyId>* dropped) {
  dropped->push_back(nodes_[place].body->id);
  nodes_[place] = Node();
  --bodies_;
}

void Template::Remove(const std::vector<Place>& places, std::vector<BodyId>* dropped) {
  if (places.empty()) return;
  for (const Place place : places) Free(place, dropped);
  for (Node& node : nodes_) {
    std::erase_if(node.next, [this](Place next) { return nodes_[next].body == nullptr; });
  }
  RemoveUnreachable(dropped);
  ++version_;
}

void Template::RemoveUnreachable(std::vector<BodyId>* dropped) {
  std::vector<bool> reached(nodes_.size());
  std::vector<Place> open = {kBegin};
  while (!open.empty()) {
    const Place place = open.back();
    open.pop_back();
    for (const Place next : nodes_[place].next) {
      if (!reached[next]) open.push_back(next);
      reached[next] = true;
    }
  }
  for (Place place = 1; place < nodes_.size(); ++place) {
    if (nodes_[place].body != nullptr && !reached[place]) Free(place, dropped);
  }
}

Invalidated Template::Invalidate(const Loss& loss) {
  Invalidated invalidated;
  invalidated.instances_lost = loss.kind == Loss::Kind::kWorker;
  std::vector<Place> places;
  for (Place place = 1; place < nodes_.size(); ++place) {
    const Body* const body = nodes_[place].body.get();
    if (body != nullptr && IsTouched(*body, loss)) places.push_back(place);
  }
  Remove(places, &invalidated.dropped);
  return invalidated;
}

// Patched words are set by each call anew, so only fixed ones count.
bool Template::IsTouched(const Body& body, const Loss& loss) const {
  const auto is_fixed = [&](size_t op, uint32_t offset) {
    return std::none_of(body.patches.begin(), body.patches.end(), [&](const Patch& patch) {
      return patch.op == op && patch.word.offset == offset;
    });
  };
  const auto holds = [&](size_t op, const Word& word) {
    uint64_t number = 0;
    std::memcpy(&number, body.ops.at(op).arguments.data() + word.offset, word.bytes);
    return loss.kind == Loss::Kind::kMemory ? number - loss.begin < loss.bytes
                                            : number == loss.name;
  };
  for (size_t i = 0; i < body.ops.size(); ++i) {
    const OpKey& key = body.ops.key(i);
    const Callee& callee = callees_->at(key.callee);
    const std::span<const Word> words = callees_->words(key.callee);
    const auto names = [&] { return holds(i, words[0]) && is_fixed(i, 0); };
    bool touched = false;
    switch (loss.kind) {
      case Loss::Kind::kModule:
        touched = callee.kind == OpKind::kKernel && callee.module == loss.module;
        break;
      case Loss::Kind::kMemory:
        touched = std::any_of(words.begin(), words.end(), [&](const Word& word) {
          return word.bytes == sizeof(uint64_t) && holds(i, word) && is_fixed(i, word.offset);
        });
        break;
      case Loss::Kind::kStream:
        touched = key.stream == loss.name;
        break;
      case Loss::Kind::kEvent:
        touched =
            (callee.kind == OpKind::kEventRecord || callee.kind == OpKind::kEventWait) && names();
        break;
      case Loss::Kind::kGraph:
        touched = callee.kind == OpKind::kGraphLaunch && names();
        break;
      case Loss::Kind::kLibrary:
        touched = callee.kind == OpKind::kLibraryCall;
        break;
      case Loss::Kind::kWorker:
        break;
    }
    if (touched) return true;
  }
  return false;
}

}  // namespace replay
