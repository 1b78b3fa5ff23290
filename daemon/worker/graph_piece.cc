#include "daemon/worker/graph_piece.h"

#include "ipc/calls/laneway_calls.h"
#include "ipc/calls/limits.h"

namespace worker {

GraphPiece::~GraphPiece() {
  if (capture_ != nullptr) EndCapture();
  if (exec_ != nullptr) driver_.cuGraphExecDestroy(exec_);
  if (graph_ != nullptr) driver_.cuGraphDestroy(graph_);
  books_->nodes -= taken_;
  books_->edges -= edges_;
}

bool GraphPiece::Place(unsigned number, CUresult* result) {
  *result = CUDA_SUCCESS;
  if (full_) return false;
  if (sealed_ || number != nodes_.size()) {
    *result = CUDA_ERROR_INVALID_VALUE;
  } else if (TakeNodes(1)) {
    nodes_.push_back({nullptr, into_.graph});
    return true;
  }
  return false;
}

bool GraphPiece::TakeNodes(uint64_t count) {
  if (count > ipc::limits::kGraphNodesMax - books_->nodes) {
    full_ = true;
    Note(CUDA_ERROR_OUT_OF_MEMORY);
    return false;
  }
  books_->nodes += count;
  taken_ += count;
  return true;
}

bool GraphPiece::TakeEdges(uint64_t count) {
  if (count > ipc::limits::kGraphEdgesMax - books_->edges) {
    full_ = true;
    Note(CUDA_ERROR_OUT_OF_MEMORY);
    return false;
  }
  books_->edges += count;
  edges_ += count;
  return true;
}

CUresult GraphPiece::Note(CUresult result) {
  if (failure_ == CUDA_SUCCESS) failure_ = result;
  return CUDA_SUCCESS;
}

CUresult GraphPiece::AddKernel(unsigned number, const CUDA_KERNEL_NODE_PARAMS& params,
                               bool cooperative) {
  CUresult result = CUDA_SUCCESS;
  if (!Place(number, &result)) return result;
  CUgraphNode& node = nodes_.back().node;
  Note(driver_.cuGraphAddKernelNode_v2(&node, into_.graph, nullptr, 0, &params));
  if (!cooperative || node == nullptr) return CUDA_SUCCESS;
  CUkernelNodeAttrValue value{};
  value.cooperative = 1;
  return Note(driver_.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
}

CUresult GraphPiece::AddFill(unsigned number, const CUDA_MEMSET_NODE_PARAMS_v1& params) {
  CUresult result = CUDA_SUCCESS;
  if (!Place(number, &result)) return result;
  return Note(driver_.cuGraphAddMemsetNode(&nodes_.back().node, into_.graph, nullptr, 0, &params,
                                           context_));
}

CUresult GraphPiece::AddCopy(unsigned number, const CUDA_MEMCPY3D& params) {
  CUresult result = CUDA_SUCCESS;
  if (!Place(number, &result)) return result;
  return Note(driver_.cuGraphAddMemcpyNode(&nodes_.back().node, into_.graph, nullptr, 0, &params,
                                           context_));
}

CUresult GraphPiece::AddEmpty(unsigned number) {
  CUresult result = CUDA_SUCCESS;
  if (!Place(number, &result)) return result;
  return Note(driver_.cuGraphAddEmptyNode(&nodes_.back().node, into_.graph, nullptr, 0));
}

CUresult GraphPiece::AddEdges(std::span<const uint32_t> pairs) {
  if (full_) return CUDA_SUCCESS;
  if (sealed_ || pairs.size() % 2 != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (pairs[i] >= pairs[i + 1] || pairs[i + 1] >= nodes_.size()) return CUDA_ERROR_INVALID_VALUE;
    if (nodes_[pairs[i]].graph != nodes_[pairs[i + 1]].graph) return CUDA_ERROR_INVALID_VALUE;
  }
  if (failure_ != CUDA_SUCCESS) return CUDA_SUCCESS;  // some nodes are none
  if (!TakeEdges(pairs.size() / 2)) return CUDA_SUCCESS;
  // One call for neighbours in one graph.
  for (size_t i = 0; i < pairs.size();) {
    const CUgraph graph = nodes_[pairs[i]].graph;
    std::vector<CUgraphNode> from, to;
    for (; i < pairs.size() && nodes_[pairs[i]].graph == graph; i += 2) {
      from.push_back(nodes_[pairs[i]].node);
      to.push_back(nodes_[pairs[i + 1]].node);
    }
    Note(driver_.cuGraphAddDependencies_v2(graph, from.data(), to.data(), nullptr, from.size()));
  }
  return CUDA_SUCCESS;
}

CUresult GraphPiece::AddCondition(unsigned number, const PieceConditions::Terms& terms) {
  if (full_ || failure_ != CUDA_SUCCESS) return CUDA_SUCCESS;
  if (sealed_) return CUDA_ERROR_INVALID_VALUE;
  if (!TakeNodes(1)) return CUDA_SUCCESS;
  return Note(conditions_.Add(driver_, graph_, context_, number, terms));
}

CUresult GraphPiece::AddConditional(unsigned number, unsigned condition, unsigned type,
                                    unsigned bodies) {
  CUresult result = CUDA_SUCCESS;
  if (!Place(number, &result)) return result;
  if (failure_ != CUDA_SUCCESS) return CUDA_SUCCESS;  // its condition may be none
  CUgraphNodeParams params{};
  result = conditions_.ParamsFor(into_, condition, type, bodies, context_, &params);
  if (result != CUDA_SUCCESS) return Note(result);
  if (!TakeNodes(bodies)) return CUDA_SUCCESS;
  result =
      driver_.cuGraphAddNode_v2(&nodes_.back().node, into_.graph, nullptr, nullptr, 0, &params);
  if (result == CUDA_SUCCESS) conditions_.Keep(number, into_, params.conditional);
  return Note(result);
}

CUresult GraphPiece::GoInside(unsigned number, unsigned conditional, unsigned body) {
  if (full_ || failure_ != CUDA_SUCCESS) return CUDA_SUCCESS;  // the body may be none
  if (sealed_ || number != nodes_.size()) return CUDA_ERROR_INVALID_VALUE;
  const PieceConditions::Place outside = {graph_, 0};
  const PieceConditions::Place* const place =
      conditional == ipc::laneway::kGraphOutside ? &outside : conditions_.Body(conditional, body);
  if (place == nullptr) return CUDA_ERROR_INVALID_VALUE;
  into_ = *place;
  return CUDA_SUCCESS;
}

CUresult GraphPiece::AddChild(unsigned number, const GraphPiece& child) {
  if (child.graph_ == nullptr || !child.sealed_) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  if (!Place(number, &result)) return result;
  touched_.Add(child.touched_);
  return Note(
      driver_.cuGraphAddChildGraphNode(&nodes_.back().node, into_.graph, nullptr, 0, child.graph_));
}

CUresult GraphPiece::BeginCapture() {
  if (failure_ != CUDA_SUCCESS) return failure_;
  CUresult result = driver_.cuStreamCreate(&capture_, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  return driver_.cuStreamBeginCaptureToGraph(capture_, graph_, nullptr, nullptr, 0,
                                             CU_STREAM_CAPTURE_MODE_RELAXED);
}

CUresult GraphPiece::EndCapture() {
  if (capture_ == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraph same = nullptr;
  const CUresult result = driver_.cuStreamEndCapture(capture_, &same);
  driver_.cuStreamDestroy_v2(capture_);
  capture_ = nullptr;
  sealed_ = true;
  return result;
}

CUresult GraphPiece::Seal() {
  if (sealed_) return CUDA_ERROR_INVALID_VALUE;
  sealed_ = true;
  if (failure_ == CUDA_SUCCESS) Note(driver_.cuGraphInstantiateWithFlags(&exec_, graph_, 0));
  return failure_;
}

CUresult GraphPiece::SetKernel(unsigned number, const CUDA_KERNEL_NODE_PARAMS& params) {
  if (exec_ == nullptr || number >= nodes_.size()) return CUDA_ERROR_INVALID_VALUE;
  return driver_.cuGraphExecKernelNodeSetParams_v2(exec_, nodes_[number].node, &params);
}

CUresult GraphPiece::Launch(CUstream stream) {
  return exec_ != nullptr ? driver_.cuGraphLaunch(exec_, stream) : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace worker
