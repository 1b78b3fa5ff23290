// Stream capture.
#include <memory>
#include <utility>
#include <vector>

#include "softgpu/driver/api.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_handles.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/thread_state.h"

namespace softgpu::api {
namespace {

// What the three versions of cuStreamGetCaptureInfo may ask for.
struct CaptureInfo {
  CUstreamCaptureStatus* status;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  size_t* count = nullptr;
};

// The array of nodes is the caller's to read until the next call on this thread.
CUresult Describe(CUstream handle, const CaptureInfo& info) {
  std::shared_ptr<Stream> stream;
  if (info.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  *info.status = CU_STREAM_CAPTURE_STATUS_NONE;
  const std::shared_ptr<Capture> capture = stream->capture();
  if (capture == nullptr) return CUDA_SUCCESS;
  *info.status = capture->status();
  if (*info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (info.id != nullptr) *info.id = capture->id();
  if (info.graph != nullptr) *info.graph = HandleOf(*capture->graph());
  std::vector<CUgraphNode>& nodes = ThreadState::Get().capture_nodes;
  nodes.clear();
  for (GraphNode* const node : capture->TailOf(*stream)) nodes.push_back(HandleOf(*node));
  if (info.nodes != nullptr) *info.nodes = nodes.data();
  if (info.count != nullptr) *info.count = nodes.size();
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, ThreadState::Get().capture_mode);
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  std::shared_ptr<Stream> stream;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Graph> graph = Graph::Create();
  const CUresult begun = Capture::Begin(stream, graph, {}, mode);
  if (begun != CUDA_SUCCESS) graph->Destroy();
  return begun;
}

CUresult cuStreamBeginCapture(CUstream stream) {
  return api::cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                     size_t count, CUstreamCaptureMode mode) {
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Graph> graph;
  std::vector<GraphNode*> nodes;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindStream(handle, &stream);
  if (result == CUDA_SUCCESS) result = FindGraph(graph_handle, &graph);
  if (result == CUDA_SUCCESS) result = FindNodes(dependencies, count, &nodes);
  return result == CUDA_SUCCESS ? Capture::Begin(stream, graph, std::move(nodes), mode) : result;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
  std::shared_ptr<Stream> stream;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  CUresult result = FindStream(handle, &stream);
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

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* dependencies,
                                              const CUgraphEdgeData*, size_t count,
                                              unsigned int flags) {
  std::shared_ptr<Stream> stream;
  std::vector<GraphNode*> nodes;
  CUresult result = FindStream(handle, &stream);
  if (result == CUDA_SUCCESS) result = FindNodes(dependencies, count, &nodes);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Capture> capture = stream->capture();
  if (capture == nullptr) return Fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is not capturing");
  return capture->SetTail(*stream, std::move(nodes), flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count,
                                           unsigned int flags) {
  return api::cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}

}  // namespace softgpu::api
