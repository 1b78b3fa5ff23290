// The pieces of an executable graph that the device can do alone. The worker has them: a few
// messages define a piece, and one launches it.
//
// A launch is a list of items in stream order: a piece, or a step that is an ordinary call because
// the client has a part in it (host functions, events, pageable memory). Thread safety: the
// executable's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shim/graphs/piece.h"

namespace shim::graphs {

class Pieces {
 public:
  // Cuts the list into pieces and steps. Kernels keep their numbers in it, for SetKernel.
  CUresult Make(const std::vector<FlatNode>& nodes);
  CUresult Launch(const Stream& stream);
  // Later launches take other parameters. REQUIRES: the same function.
  CUresult SetKernel(uint32_t node, const KernelWork& work);

 private:
  struct Item {
    uint32_t begin = 0;            // of the nodes in it
    std::unique_ptr<Piece> piece;  // null: one step
    const Work* step = nullptr;
  };
  std::vector<Item> items_;
};

// One step of a launch that is an ordinary call.
CUresult Run(const Work& work, const Stream& stream);

}  // namespace shim::graphs
