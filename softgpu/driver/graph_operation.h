// One launch of an executable graph: runs the operations of its steps one after the other.
//
// Which body of a conditional node runs, and how often, is asked when the launch gets there.
// Thread safety: as of any operation.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "softgpu/driver/graph_exec.h"
#include "softgpu/driver/operation.h"

namespace softgpu {

class GraphOperation final : public Operation {
 public:
  using Timeline = scheduler::streams::Timeline;
  using Moment = Timeline::Moment;
  using Step = GraphExec::Step;
  using Steps = GraphExec::Steps;

  // `cancel`: of the steps' context. `last_end`: when the launch before this one ends, then when
  // this one does; Enter alone uses it.
  GraphOperation(Steps steps, const std::atomic<bool>* cancel, CUstream stream, Moment* last_end);

  CUresult Run() override;
  void Skip(CUresult fault) override;
  // The nodes begin as their edges say, whatever the order in which they run.
  Moment Enter(Timeline* timeline, const Moment& after) override;

  // Events that this launch records, and what waits mean by them.
  const std::map<const Step*, std::shared_ptr<Event::Mark>>& marks() const { return marks_; }

 private:
  static Place PlaceOf(const Steps& steps);
  void Collect(const Steps& steps);
  Moment EnterSteps(const Steps& steps, Timeline* timeline, const Moment& after);
  Moment EnterStep(const Step& step, Timeline* timeline, std::vector<Moment> before);
  CUresult RunSteps(const Steps& steps);
  static void BeginConditions(const Steps& steps);
  CUresult RunInner(const Step& step);
  CUresult RunConditional(const GraphConditional& node, const std::vector<Steps>& bodies);
  CUresult MustEnd(uint64_t begin_ns) const;

  const Steps steps_;
  const std::atomic<bool>* const cancel_;
  const CUstream stream_;
  Moment* const last_end_;
  std::map<const Step*, std::shared_ptr<Event::Mark>> marks_;
  std::map<const Step*, Moment> awaited_;  // by steps that wait for events
};

}  // namespace softgpu
