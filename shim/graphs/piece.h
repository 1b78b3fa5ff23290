// One piece of an executable graph: nodes that the device can do alone, which the worker makes a
// graph of the driver's from. Thread safety: a piece is its owner's; captures (library.h) come one
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ipc/calls.h"
#include "shim/graphs/piece_conditions.h"
#include "shim/graphs/work.h"
#include "shim/state.h"

namespace shim::graphs {

// A piece in the worker; ended there when the client gives it up.
class Piece {
 public:
  // Sends the definition of nodes[begin, end) and waits until the worker has it.
  static CUresult Make(const std::vector<FlatNode>& nodes, size_t begin, size_t end,
                       const Context& context, uint64_t context_value,
                       std::unique_ptr<Piece>* made);
  // A part of other pieces: what libraries do while an IntoCapture of its value lives (send.h).
  static CUresult BeginCapture(const Stream& stream, std::shared_ptr<Piece>* made);
  CUresult EndCapture() const;
  ~Piece();
  Piece(const Piece&) = delete;
  uint64_t value() const { return value_; }

  CUresult SetKernel(uint32_t node, const KernelWork& work);
  CUresult Launch(const Stream& stream) const;

 private:
  explicit Piece(uint64_t value) : value_(value) {}
  template <ipc::Op op>
  static CUresult Begin(uint64_t context, uint32_t wire, uint64_t* value);
  // Null when its context has ended.
  const GraphPiece* Find() const;
  static std::vector<uint64_t> ModulesOf(const std::vector<FlatNode>& nodes, size_t begin,
                                         size_t end);
  CUresult Define(const std::vector<FlatNode>& nodes, size_t begin, size_t end, uint32_t wire);
  CUresult DefineNode(const std::vector<FlatNode>& nodes, size_t begin, size_t number,
                      const PieceConditions& conditions, uint32_t wire);
  CUresult SendEdges(const std::vector<FlatNode>& nodes, size_t begin, size_t end, uint32_t wire);

  const uint64_t value_;
};

}  // namespace shim::graphs
