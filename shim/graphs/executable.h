// An executable graph: the work of a graph's nodes in an order that respects the edges.
//
// A launch puts the steps into a stream one after the other, each by the calls that do the same at
// once; steps that the device can do alone go to the worker together (pieces.h). Launches of one
// executable wait for each other, in whatever stream they are. Changes hold for later launches.
// Thread safety: all methods.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "graphs/plan.h"
#include "shim/graphs/graph.h"
#include "shim/graphs/pieces.h"
#include "shim/state.h"

namespace shim::graphs {

class Executable {
 public:
  // 1: the graph has a cycle.
  static CUresult Create(const Graph& graph, cuuint64_t flags, std::shared_ptr<Executable>* made);
  explicit Executable(cuuint64_t flags) : flags_(flags) {}
  ~Executable();

  uint64_t value = 0;
  cuuint64_t flags() const { return flags_; }

  // A graph that does the same: what a launch is in a stream that captures.
  std::shared_ptr<Graph> ToGraph();
  CUresult Launch(const Stream& stream);

  // `node`: the value of a node of the graph that this was made from, or of one inside it; the
  // graph may be gone. The new work must be of the same type. Child graphs and conditional nodes
  // can't be switched off.
  CUresult SetWork(const void* node, Work work);
  CUresult SetEnabled(const void* node, bool enabled);
  CUresult GetEnabled(const void* node, bool* enabled);
  bool HasConditional();
  // Takes every node's work from a graph of the same shape; says how it failed otherwise.
  CUresult Update(const Graph& graph, CUgraphExecUpdateResultInfo* info);

 private:
  struct Step {
    uint64_t node = 0;
    Work work;
    // Of a child graph: its steps. Of a conditional node: those of each body.
    std::vector<std::vector<Step>> inner;
    ::graphs::StepShape shape;
    bool enabled = true;
    uint32_t flat = 0;  // its node among the flat ones; of a child graph its last
  };
  using Steps = std::vector<Step>;

  CUresult MakeStep(uint64_t node, Work work, Step* step);
  CUresult MakeSteps(const Graph& graph, Steps* steps);
  CUresult MakeInner(const Graph& graph, Step* step);
  static void ChangeMemory(const Steps& steps);
  static void Flatten(Steps* steps, const std::vector<uint32_t>& before, FlatNode::Place place,
                      std::vector<FlatNode>* nodes);
  static uint32_t FlattenChild(Steps* children, std::vector<uint32_t> before, FlatNode::Place place,
                               std::vector<FlatNode>* nodes);
  static std::shared_ptr<Graph> GraphOf(const Steps& steps);
  static std::vector<::graphs::StepShape> ShapesOf(const Steps& steps);
  static ::graphs::Difference Compare(const Steps& before, const Steps& after, uint64_t* at);
  static void KeepNames(const Steps& before, Steps* after);
  static void KeepInnerNames(const Step& before, Step* after);
  static Step* FindIn(Steps* steps, uint64_t node);
  Step* FindStep(const void* node) REQUIRES(mutex_) {
    return FindIn(&steps_, reinterpret_cast<uint64_t>(node));
  }
  CUresult Change(Step* step, Step changed) REQUIRES(mutex_);
  CUresult MakePieces() REQUIRES(mutex_);
  CUresult OrderAfterLast(const Stream& stream) REQUIRES(mutex_);
  // Gives the references up behind the launches so far.
  void GiveUp(std::unique_ptr<UserReferences> objects) REQUIRES(mutex_);

  const cuuint64_t flags_;
  base::Mutex mutex_;
  Steps steps_ GUARDED_BY(mutex_);
  std::unique_ptr<UserReferences> objects_ GUARDED_BY(mutex_);  // its graph's
  Pieces pieces_ GUARDED_BY(mutex_);
  bool stale_ GUARDED_BY(mutex_) = true;  // the pieces are not what the steps say
  bool launched_ GUARDED_BY(mutex_) = false;
  uint64_t last_stream_ GUARDED_BY(mutex_) = 0;  // of the last launch, by its value
  int last_device_ GUARDED_BY(mutex_) = 0;
  std::atomic<bool> has_memory_{false};  // a step allocates or frees, or has once
};

// As CaptureWork (capture.h), of a launch: a child graph.
std::optional<CUresult> CaptureLaunch(const Stream& stream, Executable* executable);

}  // namespace shim::graphs
