#include "softgpu/driver/capture.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/thread_state.h"

namespace softgpu {
namespace {

std::atomic<uint64_t> next_id{1};

}  // namespace

Capture::Capture(std::shared_ptr<Graph> graph, Stream* origin, CUstreamCaptureMode mode,
                 uint64_t thread_id)
    : id_(next_id.fetch_add(1)),
      graph_(std::move(graph)),
      origin_(origin),
      mode_(mode),
      thread_id_(thread_id) {}

CUresult Capture::Begin(const std::shared_ptr<Stream>& stream, std::shared_ptr<Graph> graph,
                        Nodes dependencies, CUstreamCaptureMode mode) {
  if (stream->context()->IsLegacy(*stream)) {
    return Fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "the legacy default stream can't be captured");
  }
  if (stream->capturing()) return Fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is capturing already");
  const std::shared_ptr<Capture> capture =
      std::make_shared<Capture>(std::move(graph), stream.get(), mode, ThreadState::Get().id);
  {
    base::MutexLock lock(&capture->mutex_);
    capture->tails_[stream.get()] = {stream, std::move(dependencies)};
  }
  stream->SetCapture(capture);
  return CUDA_SUCCESS;
}

CUresult Capture::End(Stream& stream, std::shared_ptr<Graph>* graph) {
  const std::shared_ptr<Capture> capture = stream.capture();
  if (capture == nullptr) return Fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is not capturing");
  if (capture->origin_ != &stream) {
    return Fail(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture began in another stream");
  }
  if (capture->mode_ != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread_id_ != ThreadState::Get().id) {
    return Fail(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture began in another thread");
  }
  bool invalidated = false, joined = false;
  {
    base::MutexLock lock(&capture->mutex_);
    invalidated = capture->invalidated_;
    joined = capture->EverythingJoined();
  }
  capture->Detach();
  if (invalidated)
    return Fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an earlier error ended the capture");
  if (!joined)
    return Fail(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "work of another stream was not joined back");
  *graph = capture->graph_;
  return CUDA_SUCCESS;
}

void Capture::Detach() {
  std::map<Stream*, std::pair<std::shared_ptr<Stream>, Nodes>> tails;
  {
    base::MutexLock lock(&mutex_);
    tails.swap(tails_);
    ended_ = true;
  }
  for (const auto& [stream, tail] : tails) stream->SetCapture(nullptr);
}

// Every stream's last nodes must come before the origin's.
bool Capture::EverythingJoined() {
  std::set<const GraphNode*> before;
  Nodes open = tails_[origin_].second;
  while (!open.empty()) {
    const GraphNode* const node = open.back();
    open.pop_back();
    if (!before.insert(node).second) continue;
    open.insert(open.end(), node->dependencies().begin(), node->dependencies().end());
  }
  for (const auto& [stream, tail] : tails_) {
    const Nodes& nodes = tail.second;
    const bool joined = std::all_of(nodes.begin(), nodes.end(),
                                    [&](GraphNode* node) { return before.count(node) != 0; });
    if (!joined) return false;
  }
  return true;
}

CUresult Capture::Add(Stream& stream, Work work) {
  base::MutexLock lock(&mutex_);
  if (invalidated_) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Nodes& tail = tails_[&stream].second;
  GraphNode* node = nullptr;
  const CUresult result = ResultOf(graph_->Add({std::move(work), {}, {}}, tail, &node));
  if (result == CUDA_SUCCESS) tail = {node};
  return result;
}

void Capture::Invalidate() {
  base::MutexLock lock(&mutex_);
  invalidated_ = true;
}

Capture::Nodes Capture::TailOf(Stream& stream) {
  base::MutexLock lock(&mutex_);
  return tails_[&stream].second;
}

CUresult Capture::Join(const std::shared_ptr<Stream>& stream, const Nodes& nodes) {
  const std::shared_ptr<Capture> current = stream->capture();
  if (current != nullptr && current.get() != this) {
    return Fail(CUDA_ERROR_STREAM_CAPTURE_MERGE,
                "the stream and the event belong to different captures");
  }
  {
    base::MutexLock lock(&mutex_);
    if (ended_)
      return Fail(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture that has ended");
    tails_.try_emplace(stream.get(), stream, Nodes());
  }
  if (current == nullptr) stream->SetCapture(shared_from_this());
  return SetTail(*stream, nodes, false);
}

CUresult Capture::SetTail(Stream& stream, Nodes nodes, bool replace) {
  base::MutexLock lock(&mutex_);
  if (invalidated_) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Nodes& tail = tails_[&stream].second;
  if (replace) tail.clear();
  for (GraphNode* const node : nodes) {
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
  return CUDA_SUCCESS;
}

CUstreamCaptureStatus Capture::status() {
  base::MutexLock lock(&mutex_);
  return invalidated_ ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult AddToCapture(Stream& stream, Work work) {
  const std::shared_ptr<Capture> capture = stream.capture();
  return capture != nullptr ? capture->Add(stream, std::move(work))
                            : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult RefuseWhileCapturing(Stream& stream) {
  const std::shared_ptr<Capture> capture = stream.capture();
  if (capture != nullptr) capture->Invalidate();
  return Fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "this call can't be captured");
}

CUresult CheckLegacyCapture(Stream& stream) {
  if (!stream.context()->LegacyWouldJoinCapture(stream)) return CUDA_SUCCESS;
  return Fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
              "work in the legacy stream would wait for a blocking stream that captures");
}

CUresult SubmitChecked(const std::shared_ptr<Stream>& stream,
                       std::unique_ptr<Operation> operation) {
  const CUresult result = CheckLegacyCapture(*stream);
  if (result == CUDA_SUCCESS) stream->context()->Submit(stream, std::move(operation));
  return result;
}

}  // namespace softgpu
