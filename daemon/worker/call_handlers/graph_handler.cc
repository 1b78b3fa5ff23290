#include "daemon/worker/call_handlers/graph_handler.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "daemon/worker/graph_piece.h"
#include "daemon/worker/kernel_node.h"

namespace worker {
namespace {

// A client may send the null name.
template <class... P, class... A>
CUresult On(CUgraphExec piece, CUresult (GraphPiece::*method)(P...), A&&... arguments) {
  if (piece == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return (GraphPiece::Of(piece)->*method)(std::forward<A>(arguments)...);
}

// Parameters of a kernel with the driver's handles of conditions in them, which `own` may hold.
const void* Translated(CUgraphExec piece, const void* params, unsigned bytes,
                       std::vector<std::byte>* own) {
  if (piece == nullptr || GraphPiece::Of(piece)->conditions().empty()) return params;
  const std::byte* const begin = static_cast<const std::byte*>(params);
  own->assign(begin, begin + bytes);
  GraphPiece::Of(piece)->conditions().Translate(own);
  return own->data();
}

}  // namespace

GraphHandler::GraphHandler(Holdings* held, CallContext* call, SessionLife* life)
    : environment_(held->environment), held_(*held), call_(*call), life_(*life) {}

CUresult GraphHandler::GraphBegin(CUgraphExec* piece) {
  const CUcontext context = environment_.contexts[static_cast<size_t>(call_.device)];
  *piece = (new GraphPiece(*environment_.driver, context, &books_))->handle();
  return CUDA_SUCCESS;
}

CUresult GraphHandler::GraphKernel(CUgraphExec piece, unsigned node, CUfunction function,
                                   unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, unsigned cooperative, const void* params,
                                   unsigned param_bytes) {
  std::vector<std::byte> translated;
  const KernelNode kernel({function,
                           {grid_x, grid_y, grid_z},
                           {block_x, block_y, block_z},
                           shared_bytes,
                           Translated(piece, params, param_bytes, &translated),
                           param_bytes});
  return On(piece, &GraphPiece::AddKernel, node, kernel.params(), cooperative != 0);
}

CUresult GraphHandler::GraphSetKernel(CUgraphExec piece, unsigned node, CUfunction function,
                                      unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                      unsigned block_x, unsigned block_y, unsigned block_z,
                                      unsigned shared_bytes, const void* params,
                                      unsigned param_bytes) {
  std::vector<std::byte> translated;
  const KernelNode kernel({function,
                           {grid_x, grid_y, grid_z},
                           {block_x, block_y, block_z},
                           shared_bytes,
                           Translated(piece, params, param_bytes, &translated),
                           param_bytes});
  return On(piece, &GraphPiece::SetKernel, node, kernel.params());
}

CUresult GraphHandler::GraphFill(CUgraphExec piece, unsigned node, CUdeviceptr to, size_t pitch,
                                 unsigned value, unsigned element_bytes, size_t row_bytes,
                                 size_t height) {
  if (element_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  NoteTouched(piece);
  const CUDA_MEMSET_NODE_PARAMS_v1 fill = {
      to, pitch, value, element_bytes, row_bytes / element_bytes, height};
  return On(piece, &GraphPiece::AddFill, node, fill);
}

CUresult GraphHandler::GraphCopy(CUgraphExec piece, unsigned node, CUdeviceptr to, size_t to_pitch,
                                 CUdeviceptr from, size_t from_pitch, size_t width, size_t height) {
  NoteTouched(piece);
  CUDA_MEMCPY3D copy{};
  copy.dstMemoryType = copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;  // it may be pinned
  copy.dstDevice = to;
  copy.dstPitch = to_pitch;
  copy.srcDevice = from;
  copy.srcPitch = from_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  copy.Depth = 1;
  return On(piece, &GraphPiece::AddCopy, node, copy);
}

CUresult GraphHandler::GraphEmpty(CUgraphExec piece, unsigned node) {
  return On(piece, &GraphPiece::AddEmpty, node);
}

CUresult GraphHandler::GraphEdges(CUgraphExec piece, unsigned, const uint32_t* edges,
                                  unsigned count) {
  return On(piece, &GraphPiece::AddEdges, std::span<const uint32_t>(edges, count));
}

CUresult GraphHandler::GraphChild(CUgraphExec piece, unsigned node, CUgraphExec captured) {
  if (captured == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return On(piece, &GraphPiece::AddChild, node, *GraphPiece::Of(captured));
}

CUresult GraphHandler::GraphCondition(CUgraphExec piece, unsigned number, uint64_t name,
                                      unsigned default_value, unsigned flags) {
  return On(piece, &GraphPiece::AddCondition, number,
            PieceConditions::Terms{name, default_value, flags});
}

CUresult GraphHandler::GraphConditional(CUgraphExec piece, unsigned node, unsigned condition,
                                        unsigned type, unsigned bodies) {
  return On(piece, &GraphPiece::AddConditional, node, condition, type, bodies);
}

CUresult GraphHandler::GraphInside(CUgraphExec piece, unsigned node, unsigned conditional,
                                   unsigned body) {
  return On(piece, &GraphPiece::GoInside, node, conditional, body);
}

CUresult GraphHandler::GraphSeal(CUgraphExec piece) { return On(piece, &GraphPiece::Seal); }

// The nodes were accepted when they named what is the session's; it may have been freed since.
CUresult GraphHandler::GraphLaunch(CUgraphExec piece, CUstream stream) {
  if (piece != nullptr && !GraphPiece::Of(piece)->touched().AreBacked(&held_.addresses)) {
    life_.Lose(
        "laneway: a graph was launched that copies, fills or computes with memory which "
        "this program has freed; the session ends, as after an illegal address",
        CUDA_ERROR_ILLEGAL_ADDRESS);
    return CUDA_SUCCESS;  // it gets the code with everything that it calls from now on
  }
  return On(piece, &GraphPiece::Launch, stream);
}

CUresult GraphHandler::GraphEnd(CUgraphExec piece) {
  if (GraphPiece::Of(piece) == capture_) capture_ = nullptr;
  delete GraphPiece::Of(piece);
  return CUDA_SUCCESS;
}

CUresult GraphHandler::GraphCapture(CUgraphExec* piece) {
  if (capture_ != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  std::unique_ptr<GraphPiece> made = std::make_unique<GraphPiece>(
      *environment_.driver, environment_.contexts[static_cast<size_t>(call_.device)], &books_);
  if (const CUresult result = made->BeginCapture(); result != CUDA_SUCCESS) return result;
  capture_ = made.release();
  *piece = capture_->handle();
  return CUDA_SUCCESS;
}

CUresult GraphHandler::GraphCaptured(CUgraphExec piece) {
  if (piece == nullptr || GraphPiece::Of(piece) != capture_) return CUDA_ERROR_INVALID_VALUE;
  return std::exchange(capture_, nullptr)->EndCapture();
}

void GraphHandler::NoteTouched(CUgraphExec piece) {
  if (piece == nullptr) return;
  for (const AddressSpan& span : call_.named) GraphPiece::Of(piece)->touched().Add(span);
}

void GraphHandler::Destroy(HandleMap* handles) {
  capture_ = nullptr;
  handles->Drain(ipc::HandleKind::kGraphExec,
                 [](void* handle) { delete GraphPiece::Of(static_cast<CUgraphExec>(handle)); });
}

}  // namespace worker
