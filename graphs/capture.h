// Stream capture: what a capturing stream is given becomes nodes of a graph instead of work.
//
// A capture begins in one stream. Another stream joins by waiting for an event that was recorded in
// a stream of the capture, and must be joined back the same way before the capture ends. For each
// of its streams a capture keeps the tail: the nodes that the next one depends on. An error
// invalidates a capture, which lasts until the stream where it began ends it.
//
// Streams are the user's: it describes one by a CaptureStream. So are events: the
// user keeps the Recording of an event that was recorded in a capture, and shows it to Wait().
//
// Thread safety: all methods of Captures. Its lock is held while a graph changes, so Use's names
// must not call back.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "graphs/graph.h"

namespace graphs {

// What captures need to know of a stream.
struct CaptureStream {
  uint64_t name = 0;      // no other stream's while it lives
  uint64_t group = 0;     // the legacy stream of a group waits for the blocking streams in it
  bool legacy = false;    // it is a legacy default stream, which is never captured
  bool blocking = false;  // the legacy stream waits for it
};

// A relaxed capture may be ended by any thread, others by the one that began them.
enum class CaptureMode { kGlobal, kThreadLocal, kRelaxed };

// What an event stands for that was recorded in a capturing stream: the stream's tail.
template <class Use>
struct CaptureRecording {
  uint64_t capture = 0;  // 0: it was not recorded in one
  std::vector<std::weak_ptr<Node<Use>>> nodes;
};

template <class Use>
class Captures {
 public:
  using Member = Node<Use>;
  using Members = std::vector<Member*>;
  using Content = typename Use::Content;
  // The graph owns its nodes. Nodes that the program has destroyed are left out wherever a capture
  // uses these.
  using Kept = std::vector<std::weak_ptr<Member>>;

  // How a capture begins.
  struct Beginning {
    std::shared_ptr<Graph<Use>> graph;
    bool is_given = false;  // the graph is the program's: it stays when the capture fails
    Members dependencies;   // of the first node
    CaptureMode mode = CaptureMode::kGlobal;
    uint64_t thread = 0;
  };
  using Recording = CaptureRecording<Use>;
  struct Status {
    uint64_t id = 0;
    bool invalidated = false;
    std::shared_ptr<Graph<Use>> graph;
    std::vector<std::shared_ptr<Member>> tail;
  };

  // Counts the streams that capture in `streams`, where callers look before they ask for more.
  explicit Captures(std::atomic<int>* streams) : streams_(streams) {}

  Refusal Begin(const CaptureStream& stream, Beginning beginning) EXCLUDES(mutex_) {
    if (stream.legacy) return Refusal::kLegacyStream;
    base::MutexLock lock(&mutex_);
    if (FindCapture(stream) != nullptr) return Refusal::kCapturingAlready;
    if (const Refusal refusal = beginning.graph->Check(beginning.dependencies);
        refusal != Refusal::kNone) {
      return refusal;
    }
    const uint64_t id = ++last_id_;
    Capture& capture = captures_[id];
    capture.tails[stream.name].nodes = Keep(beginning.dependencies);
    capture.origin = stream.name;
    capture.beginning = std::move(beginning);
    Enter(stream, id, &capture);
    return Refusal::kNone;
  }

  // Ends the capture that began in `stream`, and gives its graph. An invalidated or unjoined
  // capture ends as well: its graph is destroyed, unless the program had given it.
  Refusal End(const CaptureStream& stream, uint64_t thread, std::shared_ptr<Graph<Use>>* graph)
      EXCLUDES(mutex_) {
    Capture ended;  // given up without the lock: the end of a graph may call the program
    Refusal refusal = Refusal::kNone;
    {
      base::MutexLock lock(&mutex_);
      Capture* const capture = FindCapture(stream);
      if (capture == nullptr) return Refusal::kNotCapturing;
      if (capture->origin != stream.name) return Refusal::kOtherOrigin;
      if (capture->beginning.mode != CaptureMode::kRelaxed && capture->beginning.thread != thread)
        return Refusal::kWrongThread;
      if (capture->invalidated) {
        refusal = Refusal::kInvalidated;
      } else if (!EverythingJoined(*capture)) {
        refusal = Refusal::kUnjoined;
      }
      ended = Drop(of_stream_.at(stream.name));
    }
    if (refusal == Refusal::kNone) {
      *graph = ended.beginning.graph;
    } else if (!ended.beginning.is_given) {
      ended.beginning.graph->Destroy();
    }
    return refusal;
  }

  // The stream is being destroyed. A stream that has joined the one where its capture began leaves
  // the capture. Any other ends it, for all its streams.
  void Abandon(const CaptureStream& stream) EXCLUDES(mutex_) {
    Capture ended;
    {
      base::MutexLock lock(&mutex_);
      Capture* const capture = FindCapture(stream);
      if (capture == nullptr) return;
      if (stream.name != capture->origin && HasJoined(*capture, capture->tails.at(stream.name))) {
        Forget(stream.name, capture->tails.at(stream.name));
        capture->tails.erase(stream.name);
        return;
      }
      ended = Drop(of_stream_.at(stream.name));
    }
    if (!ended.beginning.is_given) ended.beginning.graph->Destroy();
  }

  // --- what calls ask about a stream: nothing when no capture is concerned, and the call shall do
  // what it always does; otherwise the call's result

  // Work for the stream becomes a node. The legacy stream must not get any that would wait for a
  // stream which captures.
  std::optional<Refusal> Put(const CaptureStream& stream, Content work) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    if (Capture* const capture = FindCapture(stream); capture != nullptr)
      return AddTo(capture, stream, std::move(work));
    return WouldJoin(stream) ? std::optional<Refusal>(Refusal::kImplicit) : std::nullopt;
  }

  // A call that can't be captured invalidates the capture. `is_work`: it would put something into
  // the stream.
  std::optional<Refusal> Refuse(const CaptureStream& stream, bool is_work) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    if (is_work && WouldJoin(stream)) return Refusal::kImplicit;
    Capture* const capture = FindCapture(stream);
    if (capture == nullptr) return std::nullopt;
    capture->invalidated = true;
    return Refusal::kNotCapturable;
  }

  // An event is recorded in the stream: it stands for the stream's tail.
  std::optional<Refusal> Record(const CaptureStream& stream, Recording* recording)
      EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    Capture* const capture = FindCapture(stream);
    if (capture == nullptr)
      return WouldJoin(stream) ? std::optional<Refusal>(Refusal::kImplicit) : std::nullopt;
    *recording = {of_stream_.at(stream.name), capture->tails[stream.name].nodes};
    return Refusal::kNone;
  }

  // The stream is to wait for an event. `recording`: of the event, with capture 0 when it was not
  // recorded in one; `is_recorded`: it was recorded at all.
  std::optional<Refusal> Wait(const CaptureStream& stream, const Recording& recording,
                              bool is_recorded) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    if (recording.capture != 0) return Join(stream, recording);
    Capture* const capture = FindCapture(stream);
    if (capture == nullptr) return std::nullopt;
    if (!is_recorded) return Refusal::kNone;  // nothing to wait for
    capture->invalidated = true;
    return Refusal::kIsolation;
  }

  // Work in the stream would wait for a stream that captures.
  bool WouldWait(const CaptureStream& stream) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    return WouldJoin(stream);
  }

  // --- one stream's capture

  bool Has(const CaptureStream& stream) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    return FindCapture(stream) != nullptr;
  }

  void Invalidate(const CaptureStream& stream) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    if (Capture* const capture = FindCapture(stream); capture != nullptr)
      capture->invalidated = true;
  }

  // Nothing when the stream doesn't capture.
  std::optional<Status> Describe(const CaptureStream& stream) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    Capture* const capture = FindCapture(stream);
    if (capture == nullptr) return std::nullopt;
    Status status{of_stream_.at(stream.name), capture->invalidated, capture->beginning.graph, {}};
    for (Member* const node : Present(*status.graph, capture->tails[stream.name].nodes))
      status.tail.push_back(node->shared_from_this());
    return status;
  }

  // The stream's next node depends on `nodes`: on these alone, or on these as well.
  Refusal SetTail(const CaptureStream& stream, const Members& nodes, bool replace)
      EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    Capture* const capture = FindCapture(stream);
    if (capture == nullptr) return Refusal::kNotCapturing;
    if (capture->invalidated) return Refusal::kInvalidated;
    for (const Member* const node : nodes) {
      if (!capture->beginning.graph->Owns(node)) return Refusal::kForeignNode;
    }
    Kept& tail = capture->tails[stream.name].nodes;
    if (replace) tail.clear();
    Append(Keep(nodes), &tail);
    return Refusal::kNone;
  }

 private:
  struct Tail {
    CaptureStream stream;
    Kept nodes;
  };
  struct Capture {
    Beginning beginning;
    uint64_t origin = 0;  // the name of the stream where it began
    bool invalidated = false;
    std::map<uint64_t, Tail> tails;  // by the stream's name
  };

  static Kept Keep(const Members& nodes) {
    Kept kept;
    for (Member* const node : nodes) kept.push_back(node->weak_from_this());
    return kept;
  }
  // Those that the program has not destroyed.
  static Members Present(const Graph<Use>& graph, const Kept& kept) {
    Members present;
    for (const std::weak_ptr<Member>& weak : kept) {
      const std::shared_ptr<Member> node = weak.lock();
      if (node != nullptr && graph.Owns(node.get())) present.push_back(node.get());
    }
    return present;
  }
  static void Append(const Kept& nodes, Kept* tail) {
    for (const std::weak_ptr<Member>& node : nodes) {
      const bool is_there = std::any_of(
          tail->begin(), tail->end(),
          [&](const std::weak_ptr<Member>& other) { return other.lock() == node.lock(); });
      if (!is_there) tail->push_back(node);
    }
  }

  // Null when the stream doesn't capture.
  Capture* FindCapture(const CaptureStream& stream) REQUIRES(mutex_) {
    const auto found = of_stream_.find(stream.name);
    return found == of_stream_.end() ? nullptr : &captures_.at(found->second);
  }

  bool WouldJoin(const CaptureStream& stream) REQUIRES(mutex_) {
    return stream.legacy && blocking_.count(stream.group) != 0;
  }

  void Enter(const CaptureStream& stream, uint64_t id, Capture* capture) REQUIRES(mutex_) {
    capture->tails[stream.name].stream = stream;
    of_stream_[stream.name] = id;
    if (stream.blocking) ++blocking_[stream.group];
    streams_->fetch_add(1, std::memory_order_relaxed);
  }

  // Its streams capture no more.
  // The stream of this name captures no more.
  void Forget(uint64_t name, const Tail& tail) REQUIRES(mutex_) {
    of_stream_.erase(name);
    streams_->fetch_sub(1, std::memory_order_relaxed);
    if (tail.stream.blocking && --blocking_[tail.stream.group] == 0)
      blocking_.erase(tail.stream.group);
  }

  Capture Drop(uint64_t id) REQUIRES(mutex_) {
    const auto found = captures_.find(id);
    for (const auto& [name, tail] : found->second.tails) Forget(name, tail);
    Capture ended = std::move(found->second);
    captures_.erase(found);
    return ended;
  }

  Refusal AddTo(Capture* capture, const CaptureStream& stream, Content work) REQUIRES(mutex_) {
    if (capture->invalidated) return Refusal::kInvalidated;
    Graph<Use>& graph = *capture->beginning.graph;
    Kept& tail = capture->tails[stream.name].nodes;
    Member* node = nullptr;
    const Refusal refusal = graph.Add(std::move(work), Present(graph, tail), &node);
    if (refusal == Refusal::kNone) tail = {node->weak_from_this()};
    return refusal;
  }

  Refusal Join(const CaptureStream& stream, const Recording& recording) REQUIRES(mutex_) {
    const auto own = of_stream_.find(stream.name);
    if (own != of_stream_.end() && own->second != recording.capture) return Refusal::kOtherCapture;
    const auto found = captures_.find(recording.capture);
    if (found == captures_.end()) return Refusal::kCaptureEnded;
    if (stream.legacy) return Refusal::kLegacyStream;
    Capture* const capture = &found->second;
    if (own == of_stream_.end()) Enter(stream, recording.capture, capture);
    if (capture->invalidated) return Refusal::kInvalidated;
    Append(recording.nodes, &capture->tails[stream.name].nodes);
    return Refusal::kNone;
  }

  // Every stream's tail must come before the origin's, or be it.
  // True when all nodes of the stream come before the end of the stream where the capture began.
  bool HasJoined(Capture& capture, const Tail& tail) REQUIRES(mutex_) {
    const Graph<Use>& graph = *capture.beginning.graph;
    const std::vector<bool> joined =
        graph.UpTo(Present(graph, capture.tails[capture.origin].nodes));
    const Members nodes = Present(graph, tail.nodes);
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](const Member* node) { return joined[node->position()]; });
  }

  bool EverythingJoined(Capture& capture) REQUIRES(mutex_) {
    for (const auto& [name, tail] : capture.tails) {
      if (!HasJoined(capture, tail)) return false;
    }
    return true;
  }

  std::atomic<int>* const streams_;
  base::Mutex mutex_;
  std::unordered_map<uint64_t, Capture> captures_ GUARDED_BY(mutex_);    // by id
  std::unordered_map<uint64_t, uint64_t> of_stream_ GUARDED_BY(mutex_);  // the capture's id
  std::unordered_map<uint64_t, int> blocking_ GUARDED_BY(mutex_);  // streams that capture, by group
  uint64_t last_id_ GUARDED_BY(mutex_) = 0;
};

}  // namespace graphs
