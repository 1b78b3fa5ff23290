#include "scheduler/streams/matching.h"

#include <algorithm>
#include <bit>

#include "scheduler/streams/bits.h"

namespace scheduler::streams {
namespace {

// Both kinds of neighbours offer Take(left, cursor, among): a node on the right that `left` may be
// linked to and that is in `among`, which it leaves, or kNoNode. A cursor begins at 0 and passes
// each possibility once.

class EdgeNeighbours {
 public:
  explicit EdgeNeighbours(const Dag& dag) : dag_(dag) {}

  NodeId Take(NodeId left, size_t* cursor, Bits* among) const {
    const std::span<const NodeId> all = dag_.Successors(left);
    while (*cursor < all.size()) {
      const NodeId right = all[(*cursor)++];
      if (!among->Has(right)) continue;
      among->Remove(right);
      return right;
    }
    return kNoNode;
  }

 private:
  const Dag& dag_;
};

// A minimum vertex cover: each edge has its source in `left` or its target in `right`.
struct Cover {
  explicit Cover(int nodes) : left(nodes), right(nodes) {}
  Bits left;
  Bits right;
};

// Edges that touch the cover once, and pairs with a path between them that touch it nowhere.
class TightNeighbours {
 public:
  TightNeighbours(const Reduction& reduction, const Cover& cover)
      : reduction_(reduction), cover_(cover) {}

  NodeId Take(NodeId left, size_t* cursor, Bits* among) const {
    const std::span<const NodeId> edges = reduction_.minimal.Successors(left);
    const bool covered = cover_.left.Has(left);
    while (*cursor < edges.size()) {
      const NodeId right = edges[(*cursor)++];
      if (!among->Has(right) || cover_.right.Has(right) == covered) continue;
      among->Remove(right);
      return right;
    }
    return covered ? kNoNode : TakeFarther(left, cursor, among);
  }

 private:
  NodeId TakeFarther(NodeId left, size_t* cursor, Bits* among) const {
    const size_t edges = reduction_.minimal.Successors(left).size();
    const std::span<const uint64_t> row = reduction_.reaches.Row(left);
    // Nodes are numbered in order: the row has nothing before `left`.
    size_t word = std::max(*cursor - edges, At(left) / kWordBits);
    for (; word < row.size(); ++word) {
      const uint64_t found = row[word] & among->words()[word] & ~cover_.right.words()[word];
      if (found == 0) continue;
      *cursor = edges + word;
      const NodeId right = static_cast<NodeId>(word) * kWordBits + std::countr_zero(found);
      among->Remove(right);
      return right;
    }
    *cursor = edges + word;
    return kNoNode;
  }

  const Reduction& reduction_;
  const Cover& cover_;
};

// Hopcroft and Karp: each phase lays the nodes on the right out in layers by their distance from
// the unlinked nodes on the left, then links along as many disjoint shortest paths as it finds.
template <typename Neighbours>
class HopcroftKarp {
 public:
  HopcroftKarp(int nodes, const Neighbours& neighbours, Matching* matching)
      : nodes_(nodes), neighbours_(neighbours), matching_(matching) {}

  void Run() {
    while (LayOut()) {
      for (NodeId left = 0; left < nodes_; ++left) {
        if (matching_->after[At(left)] == kNoNode) Augment(left);
      }
    }
  }

 private:
  // Whether a path reaches an unlinked node on the right; no layer lies beyond the nearest such
  // one.
  bool LayOut() {
    std::vector<NodeId> lefts;
    for (NodeId left = 0; left < nodes_; ++left) {
      if (matching_->after[At(left)] == kNoNode) lefts.push_back(left);
    }
    layers_.clear();
    Bits unreached(nodes_);
    unreached.Fill();
    while (!lefts.empty()) {
      Bits layer(nodes_), unlinked(nodes_);
      bool found = false;
      std::vector<NodeId> next;
      for (const NodeId left : lefts) {
        size_t cursor = 0;
        while (true) {
          const NodeId right = neighbours_.Take(left, &cursor, &unreached);
          if (right == kNoNode) break;
          const NodeId beyond = matching_->before[At(right)];
          (beyond == kNoNode ? unlinked : layer).Add(right);
          if (beyond != kNoNode) next.push_back(beyond);
          found |= beyond == kNoNode;
        }
      }
      layers_.push_back(found ? unlinked : layer);
      if (found) return true;
      lefts.swap(next);
    }
    return false;
  }

  // A walk through the layers, on a stack of its own: a path may have thousands of nodes.
  void Augment(NodeId start) {
    std::vector<Stop> path = {{start}};
    while (!path.empty()) {
      Stop& stop = path.back();
      stop.right = neighbours_.Take(stop.left, &stop.cursor, &layers_[path.size() - 1]);
      if (stop.right == kNoNode) {
        path.pop_back();
        continue;
      }
      const NodeId beyond = matching_->before[At(stop.right)];
      if (beyond == kNoNode) return LinkAlong(path);
      path.push_back({beyond});
    }
  }

  struct Stop {
    NodeId left = kNoNode;
    NodeId right = kNoNode;
    size_t cursor = 0;
  };

  void LinkAlong(const std::vector<Stop>& path) {
    for (const Stop& stop : path) {
      matching_->after[At(stop.left)] = stop.right;
      matching_->before[At(stop.right)] = stop.left;
    }
    ++matching_->links;
  }

  const int nodes_;
  const Neighbours& neighbours_;
  Matching* const matching_;
  std::vector<Bits> layers_;  // those on the right at each distance that no path has used yet
};

// König: what alternating paths from unlinked sources reach on the right, and the sources that they
// do not reach.
Cover VertexCover(const Dag& dag, const Matching& matching) {
  Cover cover(dag.nodes());
  std::vector<NodeId> lefts;
  for (NodeId node = 0; node < dag.nodes(); ++node) {
    cover.left.Add(node);
    if (matching.after[At(node)] == kNoNode) lefts.push_back(node);
  }
  while (!lefts.empty()) {
    const NodeId left = lefts.back();
    lefts.pop_back();
    cover.left.Remove(left);
    for (const NodeId right : dag.Successors(left)) {
      if (cover.right.Has(right)) continue;
      cover.right.Add(right);
      lefts.push_back(matching.before[At(right)]);
    }
  }
  return cover;
}

}  // namespace

Matching MaximumMatching(const Dag& dag) {
  Matching matching(dag.nodes());
  const EdgeNeighbours neighbours(dag);
  HopcroftKarp<EdgeNeighbours>(dag.nodes(), neighbours, &matching).Run();
  return matching;
}

void Extend(const Reduction& reduction, Matching* matching) {
  const Cover cover = VertexCover(reduction.minimal, *matching);
  const TightNeighbours neighbours(reduction, cover);
  HopcroftKarp<TightNeighbours>(reduction.minimal.nodes(), neighbours, matching).Run();
}

}  // namespace scheduler::streams
