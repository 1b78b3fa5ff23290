// The dependency graph of operations that read and write ranges of memory.
//
// Operations are added in program order. Two operations that touch a byte in common, and of which
// one writes the byte, keep their order: read after write, write after read, write after write. An
// operation whose memory is not known keeps its order with all others. Edges that other edges make
// needless are left out where that is cheap; reduction.h takes out the rest.
//
// An interval map holds, for each stretch of addresses, the operation that wrote last and those
// that have read since. An operation costs O(log(stretches)) and one step for each stretch of its
// ranges. Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "scheduler/streams/dag.h"
#include "scheduler/streams/range.h"

namespace scheduler::streams {

enum class Access { kRead, kWrite, kUpdate };  // kUpdate: reads and writes

struct Touch {
  Range range;
  Access access = Access::kRead;
};

class Dependencies {
 public:
  // The next operation, and its number; ranges of one operation may overlap. REQUIRES: no range
  // passes the end of the address space.
  NodeId Add(const std::vector<Touch>& touches);
  // The next operation, which comes after all before and before all after it.
  NodeId AddBarrier();

  // The graph of all operations so far; nullopt: they are more than kNodesMax.
  std::optional<Dag> Graph() const { return Dag::Make(operations_, edges_); }

 private:
  struct Stretch {
    uint64_t end = 0;
    NodeId writer = kNoNode;
    std::vector<NodeId> readers;  // since then, ascending
  };
  using Stretches = std::map<uint64_t, Stretch>;  // by begin; they do not overlap

  NodeId Next();
  void Depend(NodeId node, NodeId on);
  void SplitAt(uint64_t address);
  void Read(NodeId node, const Range& range);
  void Write(NodeId node, const Range& range);

  int operations_ = 0;
  std::vector<Edge> edges_;
  std::vector<bool> followed_;  // of each operation: whether an edge leads from it
  NodeId barrier_ = kNoNode;    // the last one
  Stretches stretches_;         // of what operations after the last barrier have touched
};

}  // namespace scheduler::streams
