// Stream capture.
#include "shim/graphs/capture.h"

#include <memory>
#include <utility>
#include <vector>

#include "shim/client.h"
#include "shim/driver/graph_lookup.h"
#include "shim/driver/local.h"
#include "shim/streams.h"

namespace local {
namespace {

using shim::Stream;
using shim::graphs::Capture;

// What the versions of cuStreamGetCaptureInfo may ask for.
struct CaptureInfo {
  CUstreamCaptureStatus* status;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  size_t* count = nullptr;
};

CUresult Find(CUstream program, Stream** stream) {
  return shim::Streams::Process().UseCurrent(program, stream);
}

// The array of nodes is the caller's to read until the next call on this thread.
CUresult Describe(CUstream program, const CaptureInfo& info) {
  Stream* stream = nullptr;
  if (info.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = Find(program, &stream); result != CUDA_SUCCESS) return result;
  *info.status = CU_STREAM_CAPTURE_STATUS_NONE;
  const std::shared_ptr<Capture> capture = Capture::Of(*stream);
  if (capture == nullptr) return CUDA_SUCCESS;
  *info.status = capture->status();
  if (*info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (info.id != nullptr) *info.id = capture->id();
  if (info.graph != nullptr) *info.graph = HandleOf(*capture->graph());
  thread_local std::vector<CUgraphNode> nodes;
  nodes.clear();
  for (const Node* const node : capture->TailOf(*stream)) nodes.push_back(HandleOf(*node));
  if (info.nodes != nullptr) *info.nodes = nodes.data();
  if (info.count != nullptr) *info.count = nodes.size();
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  thread_local CUstreamCaptureMode mine = CU_STREAM_CAPTURE_MODE_GLOBAL;
  if (const CUresult result = shim::Client::Process().Ready(); result != CUDA_SUCCESS)
    return result;
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(mine, *mode);
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream program, CUstreamCaptureMode mode) {
  Stream* stream = nullptr;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = Find(program, &stream); result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Graph> graph = Graph::Create();
  const CUresult begun = Capture::Begin(*stream, graph, {}, mode);
  if (begun != CUDA_SUCCESS) graph->Destroy();
  return begun;
}

CUresult cuStreamBeginCapture(CUstream program) {
  return local::cuStreamBeginCapture_v2(program, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream program, CUgraph graph_program,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                     size_t count, CUstreamCaptureMode mode) {
  Stream* stream = nullptr;
  std::shared_ptr<Graph> graph;
  std::vector<Node*> nodes;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = Find(program, &stream);
  if (result == CUDA_SUCCESS) result = FindGraph(graph_program, &graph);
  if (result == CUDA_SUCCESS) result = FindNodes(dependencies, count, &nodes);
  return result == CUDA_SUCCESS ? Capture::Begin(*stream, graph, std::move(nodes), mode) : result;
}

CUresult cuStreamEndCapture(CUstream program, CUgraph* out) {
  Stream* stream = nullptr;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  CUresult result = Find(program, &stream);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<Graph> graph;
  result = Capture::End(*stream, &graph);
  if (result == CUDA_SUCCESS) *out = HandleOf(*graph);
  return result;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return Describe(stream, {status});
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return Describe(stream, {status, id});
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes, size_t* count) {
  return Describe(stream, {status, id, graph, nodes, count});
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes,
                                   const CUgraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;  // all of them are the default
  return Describe(stream, {status, id, graph, nodes, count});
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream program, CUgraphNode* dependencies,
                                              const CUgraphEdgeData*, size_t count,
                                              unsigned flags) {
  Stream* stream = nullptr;
  std::vector<Node*> nodes;
  CUresult result = Find(program, &stream);
  if (result == CUDA_SUCCESS) result = FindNodes(dependencies, count, &nodes);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Capture> capture = Capture::Of(*stream);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  return capture->SetTail(*stream, nodes, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream program, CUgraphNode* dependencies,
                                           size_t count, unsigned flags) {
  return local::cuStreamUpdateCaptureDependencies_v2(program, dependencies, nullptr, count, flags);
}

}  // namespace local
