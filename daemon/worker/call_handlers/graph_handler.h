// Serves the calls that build and launch pieces of executable graphs (ipc::GraphCalls,
// ipc::ConditionalCalls), and knows which piece calls of libraries are captured into. Thread
// safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include "daemon/worker/call_context.h"
#include "daemon/worker/graph_piece.h"
#include "daemon/worker/handle_map.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/session_life.h"
#include "ipc/door.h"

namespace worker {

class GraphHandler final : public ipc::GraphCalls, public ipc::ConditionalCalls {
 public:
  // All outlive this object.
  GraphHandler(Holdings* held, CallContext* call, SessionLife* life);
  GraphHandler(const GraphHandler&) = delete;

  // The piece that calls of libraries may be captured into; null: none.
  GraphPiece* capture() const { return capture_; }
  // At each launch, the piece touches the memory that the call being served has named.
  void NoteTouched(CUgraphExec piece);
  // All pieces go.
  void Destroy(HandleMap* handles);

  // --- ipc::GraphCalls
  CUresult GraphBegin(CUgraphExec* piece) override;
  CUresult GraphKernel(CUgraphExec piece, unsigned node, CUfunction function, unsigned grid_x,
                       unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                       unsigned block_z, unsigned shared_bytes, unsigned cooperative,
                       const void* params, unsigned param_bytes) override;
  CUresult GraphFill(CUgraphExec piece, unsigned node, CUdeviceptr to, size_t pitch, unsigned value,
                     unsigned element_bytes, size_t row_bytes, size_t height) override;
  CUresult GraphCopy(CUgraphExec piece, unsigned node, CUdeviceptr to, size_t to_pitch,
                     CUdeviceptr from, size_t from_pitch, size_t width, size_t height) override;
  CUresult GraphEmpty(CUgraphExec piece, unsigned node) override;
  CUresult GraphEdges(CUgraphExec piece, unsigned, const uint32_t* edges, unsigned count) override;
  CUresult GraphChild(CUgraphExec piece, unsigned node, CUgraphExec captured) override;
  CUresult GraphSeal(CUgraphExec piece) override;
  CUresult GraphSetKernel(CUgraphExec piece, unsigned node, CUfunction function, unsigned grid_x,
                          unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned shared_bytes, const void* params,
                          unsigned param_bytes) override;
  CUresult GraphLaunch(CUgraphExec piece, CUstream stream) override;
  CUresult GraphEnd(CUgraphExec piece) override;
  CUresult GraphCapture(CUgraphExec* piece) override;
  CUresult GraphCaptured(CUgraphExec piece) override;

  // --- ipc::ConditionalCalls
  CUresult GraphCondition(CUgraphExec piece, unsigned number, uint64_t name, unsigned default_value,
                          unsigned flags) override;
  CUresult GraphConditional(CUgraphExec piece, unsigned node, unsigned condition, unsigned type,
                            unsigned bodies) override;
  CUresult GraphInside(CUgraphExec piece, unsigned node, unsigned conditional,
                       unsigned body) override;

 private:
  const Environment& environment_;
  Holdings& held_;
  const CallContext& call_;
  SessionLife& life_;
  GraphBooks books_;
  GraphPiece* capture_ = nullptr;
};

}  // namespace worker
