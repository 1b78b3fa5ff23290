// What of an executable graph the worker has: pieces of it that the device can do alone, each
// defined by a few messages and launched by one.
//
// A launch is a list of items in stream order: a piece, or a step that is an ordinary call because
// the client has a part in it (host functions, events, pageable memory). Thread safety: the
// executable's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shim/graphs/work.h"
#include "shim/state.h"

namespace shim::graphs {

// One node of what was flattened: child graphs are their nodes, between two empty ones.
struct FlatNode {
  const Work* work = nullptr;          // null: nothing to do
  std::vector<uint32_t> dependencies;  // earlier ones
};

// A piece in the worker; ended there when the client gives it up.
class Piece {
 public:
  // Sends the definition of nodes[begin, end) and waits until the worker has it.
  static CUresult Make(const std::vector<FlatNode>& nodes, size_t begin, size_t end,
                       const Context& context, uint64_t context_value,
                       std::unique_ptr<Piece>* made);
  ~Piece();
  Piece(const Piece&) = delete;

  CUresult SetKernel(uint32_t node, const KernelWork& work);
  CUresult Launch(const Stream& stream) const;

 private:
  explicit Piece(uint64_t value) : value_(value) {}
  // Null when its context has ended.
  const GraphPiece* Find() const;
  CUresult Define(const std::vector<FlatNode>& nodes, size_t begin, size_t end, uint32_t wire);
  CUresult SendEdges(const std::vector<FlatNode>& nodes, size_t begin, size_t end, uint32_t wire);

  const uint64_t value_;
};

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

// Whether the device can do it without the client.
bool IsForDevice(const Work& work);

// One step of a launch that is an ordinary call.
CUresult Run(const Work& work, const Stream& stream);

}  // namespace shim::graphs
