// A piece of a client's executable graph, as the driver has it: built node by node, then sealed.
//
// The client keeps the graph itself and sends what the device can do alone (kernels, fills, copies)
// with the edges between; nodes are numbered from 0 in the order of their messages, and an edge
// leads to a later node. Nodes in a body of a conditional node are numbered like all others. A
// failure while it is built is reported when it is sealed. Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <span>
#include <vector>

#include "daemon/worker/own_addresses.h"
#include "daemon/worker/piece_conditions.h"
#include "ipc/driver_table.h"

namespace worker {

// What the pieces of one session have in all (limits::kGraphNodesMax, kGraphEdgesMax).
struct GraphBooks {
  uint64_t nodes = 0;
  uint64_t edges = 0;
};

class GraphPiece {
 public:
  // `books` outlives it.
  GraphPiece(const ipc::DriverTable& driver, CUcontext context, GraphBooks* books)
      : driver_(driver), context_(context), books_(books) {
    Note(driver_.cuGraphCreate(&graph_, 0));
    into_.graph = graph_;
  }
  GraphPiece(const GraphPiece&) = delete;
  ~GraphPiece();

  // What the session's handle map holds in the driver's place.
  CUgraphExec handle() { return reinterpret_cast<CUgraphExec>(this); }
  static GraphPiece* Of(CUgraphExec handle) { return reinterpret_cast<GraphPiece*>(handle); }

  // The node that is to have this number; 1 when another one's turn is, or it is sealed. What is
  // beyond the session's limits is not made, and the seal says 2.
  CUresult AddKernel(unsigned number, const CUDA_KERNEL_NODE_PARAMS& params, bool cooperative);
  CUresult AddFill(unsigned number, const CUDA_MEMSET_NODE_PARAMS_v1& params);
  CUresult AddCopy(unsigned number, const CUDA_MEMCPY3D& params);
  CUresult AddEmpty(unsigned number);
  // A condition is one of these nodes for the limits, and so is each body.
  CUresult AddCondition(unsigned number, const PieceConditions::Terms& terms);
  CUresult AddConditional(unsigned number, unsigned condition, unsigned type, unsigned bodies);
  // Where the node that is to have this number goes, and those behind it.
  CUresult GoInside(unsigned number, unsigned conditional, unsigned body);
  const PieceConditions& conditions() const { return conditions_; }
  // What its nodes touch at each launch, besides what kernels do.
  TouchedSpans& touched() { return touched_; }
  // Pairs (from, to) of node numbers.
  CUresult AddEdges(std::span<const uint32_t> pairs);
  CUresult AddChild(unsigned number, const GraphPiece& child);
  CUresult Seal();

  // Instead of nodes: what is put into capture() in between. Relaxed, so that it concerns no other
  // stream and no other thread.
  CUresult BeginCapture();
  CUresult EndCapture();
  CUstream capture() const { return capture_; }

  // Once it is sealed.
  CUresult SetKernel(unsigned number, const CUDA_KERNEL_NODE_PARAMS& params);
  CUresult Launch(CUstream stream);

 private:
  // A place in nodes_ for the next one; otherwise *result is what the call returns.
  bool Place(unsigned number, CUresult* result);
  bool TakeNodes(uint64_t count);
  CUresult Note(CUresult result);
  bool TakeEdges(uint64_t count);

  const ipc::DriverTable& driver_;
  const CUcontext context_;
  GraphBooks* const books_;
  CUgraph graph_ = nullptr;  // kept: a change of a kernel names its node
  CUgraphExec exec_ = nullptr;
  CUstream capture_ = nullptr;
  bool sealed_ = false;
  bool full_ = false;  // a node or an edge was beyond the limits
  struct Node {
    CUgraphNode node = nullptr;
    CUgraph graph = nullptr;  // the piece's, or a body
  };
  std::vector<Node> nodes_;
  uint64_t taken_ = 0;  // of books_->nodes
  uint64_t edges_ = 0;
  TouchedSpans touched_;
  PieceConditions conditions_;
  PieceConditions::Place into_;  // the next node goes there
  CUresult failure_ = CUDA_SUCCESS;
};

}  // namespace worker
