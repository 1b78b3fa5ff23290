#include "shim/graphs/capture.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "shim/thread_state.h"

namespace shim::graphs {

std::atomic<int> capturing_streams{0};

namespace {

std::atomic<uint64_t> last_id{0};
std::atomic<int> blocking_captures{0};  // blocking streams that capture

struct CapturedEvent {
  std::shared_ptr<Capture> capture;
  Capture::Nodes nodes;
};

// Which streams capture, and what events stand for in a capture.
struct Captures {
  std::mutex mutex;
  std::unordered_map<uint64_t, std::shared_ptr<Capture>> of_stream;
  std::unordered_map<CUevent, CapturedEvent> of_event;

  static Captures& Process() {
    static Captures* const captures = new Captures;
    return *captures;
  }
};

void SetCapture(uint64_t stream, bool blocking, const std::shared_ptr<Capture>& capture) {
  Captures& all = Captures::Process();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (capture != nullptr) {
    all.of_stream[stream] = capture;
  } else {
    all.of_stream.erase(stream);
  }
  const int change = capture != nullptr ? 1 : -1;
  if (blocking) blocking_captures.fetch_add(change, std::memory_order_relaxed);
  capturing_streams.fetch_add(change, std::memory_order_relaxed);
}

bool IsBlocking(const Stream& stream) { return (stream.flags & CU_STREAM_NON_BLOCKING) == 0; }

// Work in the legacy stream would wait for a blocking stream that captures.
bool WouldJoin(const Stream& stream) {
  return stream.legacy && blocking_captures.load(std::memory_order_relaxed) > 0;
}

}  // namespace

Capture::Capture(std::shared_ptr<Graph> graph, uint64_t origin, CUstreamCaptureMode mode)
    : id_(last_id.fetch_add(1) + 1),
      graph_(std::move(graph)),
      origin_(origin),
      mode_(mode),
      thread_(ThisThread().number) {}

std::shared_ptr<Capture> Capture::Of(const Stream& stream) {
  if (!AnyCapture()) return nullptr;
  Captures& all = Captures::Process();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.of_stream.find(stream.value);
  return found == all.of_stream.end() ? nullptr : found->second;
}

CUresult Capture::Begin(const Stream& stream, std::shared_ptr<Graph> graph, Nodes dependencies,
                        CUstreamCaptureMode mode) {
  if (stream.legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (Of(stream) != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  const std::shared_ptr<Capture> capture =
      std::make_shared<Capture>(std::move(graph), stream.value, mode);
  capture->tails_[stream.value] = {IsBlocking(stream), std::move(dependencies)};
  SetCapture(stream.value, IsBlocking(stream), capture);
  return CUDA_SUCCESS;
}

CUresult Capture::End(const Stream& stream, std::shared_ptr<Graph>* graph) {
  const std::shared_ptr<Capture> capture = Of(stream);
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin_ != stream.value) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode_ != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread_ != ThisThread().number) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  bool invalidated = false, joined = false;
  {
    const std::lock_guard<std::mutex> lock(capture->mutex_);
    invalidated = capture->invalidated_;
    joined = capture->EverythingJoined();
  }
  capture->Detach();
  if (invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!joined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  *graph = capture->graph_;
  return CUDA_SUCCESS;
}

void Capture::Abandon(const Stream& stream) {
  const std::shared_ptr<Capture> capture = Of(stream);
  if (capture == nullptr) return;
  capture->Invalidate();
  capture->Detach();
}

void Capture::Detach() {
  std::map<uint64_t, Tail> tails;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tails.swap(tails_);
    ended_ = true;
  }
  for (const auto& [stream, tail] : tails) SetCapture(stream, tail.blocking, nullptr);
}

// Every stream's last nodes must come before the origin's.
bool Capture::EverythingJoined() {
  std::set<const Node*> before;
  Nodes open = tails_[origin_].nodes;
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (!before.insert(node).second) continue;
    open.insert(open.end(), node->dependencies().begin(), node->dependencies().end());
  }
  for (const auto& [stream, tail] : tails_) {
    const bool joined = std::all_of(tail.nodes.begin(), tail.nodes.end(),
                                    [&](Node* node) { return before.count(node) != 0; });
    if (!joined) return false;
  }
  return true;
}

CUresult Capture::Add(const Stream& stream, Work work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (invalidated_) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Nodes& tail = tails_[stream.value].nodes;
  Node* node = nullptr;
  const CUresult result = ResultOf(graph_->Add({std::move(work), {}, {}}, tail, &node));
  if (result == CUDA_SUCCESS) tail = {node};
  return result;
}

void Capture::Invalidate() {
  const std::lock_guard<std::mutex> lock(mutex_);
  invalidated_ = true;
}

Capture::Nodes Capture::TailOf(const Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return tails_[stream.value].nodes;
}

CUresult Capture::Join(const Stream& stream, const Nodes& nodes) {
  const std::shared_ptr<Capture> current = Of(stream);
  if (current != nullptr && current.get() != this) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return CUDA_ERROR_CAPTURED_EVENT;
    tails_.try_emplace(stream.value, Tail{IsBlocking(stream), {}});
  }
  if (current == nullptr) SetCapture(stream.value, IsBlocking(stream), shared_from_this());
  return SetTail(stream, nodes, false);
}

CUresult Capture::SetTail(const Stream& stream, const Nodes& nodes, bool replace) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (invalidated_) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Nodes& tail = tails_[stream.value].nodes;
  if (replace) tail.clear();
  for (Node* const node : nodes) {
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
  return CUDA_SUCCESS;
}

CUstreamCaptureStatus Capture::status() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return invalidated_ ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// --- what the calls ask --------------------------------------------------------------------------

std::optional<CUresult> CaptureWork(const Stream& stream, Work work) {
  if (const std::shared_ptr<Capture> capture = Capture::Of(stream); capture != nullptr)
    return capture->Add(stream, std::move(work));
  if (WouldJoin(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  return std::nullopt;
}

std::optional<CUresult> RefuseInCapture(const Stream& stream, bool is_work) {
  if (is_work && WouldJoin(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  const std::shared_ptr<Capture> capture = Capture::Of(stream);
  if (capture == nullptr) return std::nullopt;
  capture->Invalidate();
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

std::optional<CUresult> RecordInCapture(const Stream& stream, CUevent event, Event* state,
                                        unsigned flags) {
  const std::shared_ptr<Capture> capture = Capture::Of(stream);
  if (capture == nullptr) {
    if (WouldJoin(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return std::nullopt;
  }
  if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0) return capture->Add(stream, EventRecordWork{event});
  CapturedEvent captured{capture, capture->TailOf(stream)};
  Captures& all = Captures::Process();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.of_event.insert_or_assign(event, std::move(captured));
  state->captured.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

std::optional<CUresult> WaitInCapture(const Stream& stream, CUevent event, const Event& state,
                                      unsigned flags) {
  const std::shared_ptr<Capture> own = Capture::Of(stream);
  if ((flags & CU_EVENT_WAIT_EXTERNAL) != 0 && own != nullptr)
    return own->Add(stream, EventWaitWork{event});
  if (state.captured.load(std::memory_order_acquire)) {
    CapturedEvent captured;
    {
      Captures& all = Captures::Process();
      const std::lock_guard<std::mutex> lock(all.mutex);
      captured = all.of_event[event];
    }
    if (captured.capture != nullptr) return captured.capture->Join(stream, captured.nodes);
  }
  if (own == nullptr) return std::nullopt;
  if (state.recorded.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  own->Invalidate();
  return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

void ForgetCaptured(CUevent event, Event* state) {
  if (!state->captured.load(std::memory_order_relaxed)) return;
  state->captured.store(false, std::memory_order_relaxed);
  Captures& all = Captures::Process();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.of_event.erase(event);
}

}  // namespace shim::graphs
