// The conditions that conditional nodes of one piece ask, by number, and which kernels set them.
//
// A kernel sets a condition by the program's handle for it, a word of its parameters. The worker
// puts the driver's handle in its place, and so knows the conditions of one piece alone.
// Thread safety: values.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shim/graphs/flat_node.h"

namespace shim::graphs {

class PieceConditions {
 public:
  // The conditions of nodes[begin, end).
  PieceConditions(const std::vector<FlatNode>& nodes, size_t begin, size_t end);

  // REQUIRES: the condition of a node in the piece.
  unsigned NumberOf(const ::graphs::Condition& condition) const {
    return numbers_.at(condition.name());
  }
  // Tells the worker of all of them.
  CUresult Send(CUgraphExec piece, uint32_t wire) const;

 private:
  std::vector<const ::graphs::Condition*> conditions_;
  std::unordered_map<uint64_t, unsigned> numbers_;  // by the program's handle
};

// The end of what must be in one piece with the node at `begin`: the bodies of a conditional node.
size_t EndOfNode(const std::vector<FlatNode>& nodes, size_t begin);
// 801, with a sentence to the program, where the client has a part in a node of a body, or a kernel
// sets a condition of another piece. `begins`: the first node of each piece or step.
CUresult CheckConditions(const std::vector<FlatNode>& nodes, const std::vector<size_t>& begins);

}  // namespace shim::graphs
