// Stream capture: what a capturing stream is given becomes nodes of a graph instead of work. All
// calls pass through the client, so it captures alone: the worker hears of the finished graph.
//
// A capture begins in one stream; others join by waiting for an event recorded in a stream that
// captures, and must be joined back the same way before it ends. For each stream the capture keeps
// the nodes that the next one depends on. Thread safety: every function, from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "shim/graphs/graph.h"
#include "shim/state.h"

namespace shim::graphs {

class Capture : public std::enable_shared_from_this<Capture> {
 public:
  using Nodes = std::vector<Node*>;

  // Null when the stream doesn't capture.
  static std::shared_ptr<Capture> Of(const Stream& stream);
  // Starts capturing in `stream`, behind `dependencies`, which are nodes of `graph`.
  static CUresult Begin(const Stream& stream, std::shared_ptr<Graph> graph, Nodes dependencies,
                        CUstreamCaptureMode mode);
  // Ends the capture that began in `stream`.
  static CUresult End(const Stream& stream, std::shared_ptr<Graph>* graph);

  // One of its streams is being destroyed.
  static void Abandon(const Stream& stream);

  CUresult Add(const Stream& stream, Work work);
  void Invalidate();

  // An event recorded in a capturing stream stands for that stream's nodes.
  Nodes TailOf(const Stream& stream);
  // `stream` waits for `nodes`, and joins the capture when it isn't part of it.
  CUresult Join(const Stream& stream, const Nodes& nodes);
  CUresult SetTail(const Stream& stream, const Nodes& nodes, bool replace);

  uint64_t id() const { return id_; }
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  CUstreamCaptureStatus status();

  Capture(std::shared_ptr<Graph> graph, uint64_t origin, CUstreamCaptureMode mode);

 private:
  struct Tail {
    bool blocking = false;
    Nodes nodes;
  };
  bool EverythingJoined();  // REQUIRES: mutex_ held
  void Detach();

  const uint64_t id_;
  const std::shared_ptr<Graph> graph_;
  const uint64_t origin_;  // the stream's value
  const CUstreamCaptureMode mode_;
  const uint32_t thread_;

  std::mutex mutex_;
  bool invalidated_ = false, ended_ = false;
  std::map<uint64_t, Tail> tails_;  // by the stream's value
};

// --- for the calls that put something into a stream ----------------------------------------------
// Each answers the call's result when it concerns a capture, and nothing when the call is to do
// what it always does. A call asks first whether any stream captures.

extern std::atomic<int> capturing_streams;  // the client library's: one for all facades
inline bool AnyCapture() { return capturing_streams.load(std::memory_order_relaxed) != 0; }

// Work becomes a node. Work in the legacy stream is refused while blocking streams capture.
std::optional<CUresult> CaptureWork(const Stream& stream, Work work);
std::optional<CUresult> RefuseInCapture(const Stream& stream, bool is_work);
// Work that CUDA doesn't capture; and what is no work, such as a query. These two ask by
// themselves whether any stream captures.
inline std::optional<CUresult> RefuseWork(const Stream& stream) {
  return AnyCapture() ? RefuseInCapture(stream, true) : std::nullopt;
}
inline std::optional<CUresult> RefuseCapture(const Stream& stream) {
  return AnyCapture() ? RefuseInCapture(stream, false) : std::nullopt;
}

// An event recorded in a stream that captures stands for the stream's last nodes (Event::captured)
// until it is recorded elsewhere.
std::optional<CUresult> RecordInCapture(const Stream& stream, CUevent event, Event* state,
                                        unsigned flags);
// Also to be asked when the event is `captured` and no stream captures any more.
std::optional<CUresult> WaitInCapture(const Stream& stream, CUevent event, const Event& state,
                                      unsigned flags);
void ForgetCaptured(CUevent event, Event* state);

}  // namespace shim::graphs
