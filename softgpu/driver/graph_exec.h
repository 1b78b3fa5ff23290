// An executable graph: the operations of its nodes in an order that respects the edges.
//
// A launch is one operation of a stream that runs them one after the other; launches of one
// executable graph wait for each other, in whatever stream they are. A change of a node's
// parameters holds for later launches. Thread safety: every function may be called from any thread.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "graphs/plan.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/operation.h"

namespace softgpu {

class Context;
class Stream;

class GraphExec {
 public:
  static CUresult Create(const Graph& graph, const std::shared_ptr<Context>& context,
                         cuuint64_t flags, std::shared_ptr<GraphExec>* exec);

  CUgraphExec handle() { return reinterpret_cast<CUgraphExec>(this); }
  cuuint64_t flags() const { return flags_; }

  // A graph that does the same: what a launch is in a stream that captures.
  std::shared_ptr<Graph> ToGraph();
  CUresult Launch(const std::shared_ptr<Stream>& stream);

  // `node` is a node of the graph that this was made from, or of one inside it; the graph may
  // be gone. The new work must be of the same type. Child graphs and conditional nodes can't be
  // switched off.
  CUresult SetWork(CUgraphNode node, Work work);
  CUresult SetEnabled(CUgraphNode node, bool enabled);
  CUresult GetEnabled(CUgraphNode node, bool* enabled);
  bool HasConditional();
  // Takes every node's parameters from a graph of the same shape; says how it failed otherwise.
  CUresult Update(const Graph& graph, CUgraphExecUpdateResultInfo* info);

  explicit GraphExec(std::shared_ptr<Context> context, cuuint64_t flags)
      : context_(std::move(context)), flags_(flags) {}

 private:
  struct Step {
    CUgraphNode node = nullptr;
    Work work;
    graphs::StepShape shape;
    std::shared_ptr<Operation> operation;  // null: nothing to do, or an event's
    // Of a child graph: its steps. Of a conditional node: those of each body.
    std::vector<std::vector<std::shared_ptr<Step>>> inner;
    std::shared_ptr<const UserReferences> objects;  // its graph's
    bool enabled = true;
  };
  using Steps = std::vector<std::shared_ptr<Step>>;

  CUresult MakeSteps(const Graph& graph, Steps* steps);
  CUresult MakeInner(const Graph& graph, Step* step);
  CUresult MakeStep(CUgraphNode node, Work work, std::shared_ptr<Step>* step);
  std::shared_ptr<const Step> FindStep(CUgraphNode node) REQUIRES(mutex_);
  static std::shared_ptr<const Step> FindIn(const Steps& steps, CUgraphNode node);
  static bool Replace(const std::shared_ptr<Step>& changed, Steps* steps);
  static std::shared_ptr<Graph> GraphOf(const Steps& steps);
  static std::vector<graphs::StepShape> ShapesOf(const Steps& steps);
  static graphs::Difference Compare(const Steps& before, const Steps& after, CUgraphNode* at);
  static void KeepNames(const Steps& before, Steps* after);
  static void KeepInnerNames(const Step& before, Step* after);
  friend class GraphOperation;

  const std::shared_ptr<Context> context_;
  const cuuint64_t flags_;
  base::Mutex mutex_;
  // Steps are replaced, never changed: launches in flight keep theirs.
  Steps steps_ GUARDED_BY(mutex_);
  Dependency last_launch_ GUARDED_BY(mutex_);
  scheduler::streams::Timeline::Moment last_end_ GUARDED_BY(mutex_);  // in virtual time
};

}  // namespace softgpu
