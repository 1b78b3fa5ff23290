// Stream capture: what a capturing stream is given becomes nodes of a graph instead of work.
//
// A capture begins in one stream; others join by waiting for an event recorded in a stream that
// captures, and must be joined back the same way before it ends. For each stream the capture keeps
// the nodes that the next one depends on. Thread safety: every function may be called from any
// thread.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "softgpu/driver/operation.h"
#include "softgpu/driver/work.h"

namespace softgpu {

class Event;
class Stream;

class Capture : public std::enable_shared_from_this<Capture> {
 public:
  using Nodes = std::vector<GraphNode*>;

  // Starts capturing in `stream`, behind `dependencies`, which are nodes of `graph`.
  static CUresult Begin(const std::shared_ptr<Stream>& stream, std::shared_ptr<Graph> graph,
                        Nodes dependencies, CUstreamCaptureMode mode);
  // Ends the capture that began in `stream`.
  static CUresult End(Stream& stream, std::shared_ptr<Graph>* graph);

  CUresult Add(Stream& stream, Work work);
  void Invalidate();

  // An event recorded in a capturing stream stands for that stream's nodes.
  Nodes TailOf(Stream& stream);
  // `stream` waits for `nodes`, and joins the capture when it isn't part of it.
  CUresult Join(const std::shared_ptr<Stream>& stream, const Nodes& nodes);
  CUresult SetTail(Stream& stream, Nodes nodes, bool replace);

  uint64_t id() const { return id_; }
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  CUstreamCaptureStatus status();

  Capture(std::shared_ptr<Graph> graph, Stream* origin, CUstreamCaptureMode mode,
          uint64_t thread_id);

 private:
  bool EverythingJoined() REQUIRES(mutex_);
  void Detach();

  const uint64_t id_;
  const std::shared_ptr<Graph> graph_;
  Stream* const origin_;
  const CUstreamCaptureMode mode_;
  const uint64_t thread_id_;

  base::Mutex mutex_;
  bool invalidated_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::map<Stream*, std::pair<std::shared_ptr<Stream>, Nodes>> tails_ GUARDED_BY(mutex_);
};

// For the api_*.cc files: a node instead of work, a call that can't be captured, and work for a
// stream that doesn't capture, which the legacy stream must not get while blocking streams of its
// context capture.
CUresult AddToCapture(Stream& stream, Work work);
CUresult RefuseWhileCapturing(Stream& stream);
CUresult CheckLegacyCapture(Stream& stream);
CUresult SubmitChecked(const std::shared_ptr<Stream>& stream, std::unique_ptr<Operation> operation);

}  // namespace softgpu
