#include "softgpu/driver/graph_operation.h"

#include <optional>
#include <string>
#include <utility>

#include "base/find.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/fault_record.h"

namespace softgpu {

GraphOperation::GraphOperation(Steps steps, const std::atomic<bool>* cancel, CUstream stream,
                               Moment* last_end)
    : Operation(PlaceOf(steps)),
      steps_(std::move(steps)),
      cancel_(cancel),
      stream_(stream),
      last_end_(last_end) {
  Collect(steps_);
}

CUresult GraphOperation::Run() {
  BeginConditions(steps_);
  return RunSteps(steps_);
}

void GraphOperation::Skip(CUresult) {
  for (const auto& [step, mark] : marks_) mark->at_ns = Event::NowNs();
}

GraphOperation::Moment GraphOperation::Enter(Timeline* timeline, const Moment& after) {
  return *last_end_ = EnterSteps(steps_, timeline, timeline->Join({after, *last_end_}));
}

Operation::Place GraphOperation::PlaceOf(const Steps& steps) {
  for (const std::shared_ptr<Step>& step : steps) {
    const bool here =
        step->operation != nullptr && step->operation->place() == Place::kStreamThread;
    if (here) return Place::kStreamThread;
    for (const Steps& inner : step->inner) {
      if (PlaceOf(inner) == Place::kStreamThread) return Place::kStreamThread;
    }
  }
  return Place::kAnywhere;
}

void GraphOperation::Collect(const Steps& steps) {
  for (const std::shared_ptr<Step>& step : steps) {
    if (!step->enabled) continue;
    for (const Steps& inner : step->inner) Collect(inner);
    if (std::holds_alternative<EventRecordWork>(step->work)) {
      marks_[step.get()] = std::make_shared<Event::Mark>();
    } else if (const EventWaitWork* const wait = std::get_if<EventWaitWork>(&step->work)) {
      const std::shared_ptr<Event::Mark> mark = wait->event->mark();
      if (mark == nullptr) continue;
      awaited_[step.get()] = mark->moment;  // the event may be recorded again
      dependencies.insert(dependencies.end(), mark->dependencies.begin(), mark->dependencies.end());
    }
  }
}

GraphOperation::Moment GraphOperation::EnterSteps(const Steps& steps, Timeline* timeline,
                                                  const Moment& after) {
  std::vector<Moment> ends;
  for (const std::shared_ptr<Step>& step : steps) {
    std::vector<Moment> before = {after};
    for (const size_t number : step->shape.dependencies) before.push_back(ends[number]);
    ends.push_back(EnterStep(*step, timeline, std::move(before)));
  }
  ends.push_back(after);
  return timeline->Join(ends);
}

GraphOperation::Moment GraphOperation::EnterStep(const Step& step, Timeline* timeline,
                                                 std::vector<Moment> before) {
  const Moment* const awaited = base::FindOrNull(awaited_, &step);
  if (awaited != nullptr) before.push_back(*awaited);
  const Moment begin = timeline->Join(before);
  // A step that is switched off still stands between its neighbours.
  if (!step.enabled) return begin;
  const std::shared_ptr<Event::Mark>* const mark = base::FindOrNull(marks_, &step);
  if (mark != nullptr) (*mark)->moment = begin;
  if (!step.inner.empty()) return EnterSteps(step.inner.front(), timeline, begin);
  return step.operation != nullptr ? step.operation->Enter(timeline, begin) : begin;
}

CUresult GraphOperation::RunSteps(const Steps& steps) {
  for (const std::shared_ptr<Step>& step : steps) {
    if (!step->enabled) continue;
    CUresult result = RunInner(*step);
    if (result == CUDA_SUCCESS && step->operation != nullptr) {
      step->operation->SetStream(stream_);
      result = step->operation->Run();
    }
    const std::shared_ptr<Event::Mark>* const mark = base::FindOrNull(marks_, step.get());
    if (mark != nullptr) (*mark)->at_ns = Event::NowNs();
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// Those of child graphs as well, and of all bodies: a launch begins once, a body many times.
void GraphOperation::BeginConditions(const Steps& steps) {
  for (const std::shared_ptr<Step>& step : steps) {
    if (const ConditionalWork* const work = std::get_if<ConditionalWork>(&step->work))
      work->node->condition->BeginLaunch();
    for (const Steps& inner : step->inner) BeginConditions(inner);
  }
}

CUresult GraphOperation::RunInner(const Step& step) {
  const ConditionalWork* const work = std::get_if<ConditionalWork>(&step.work);
  if (work != nullptr) return RunConditional(*work->node, step.inner);
  return step.inner.empty() ? CUDA_SUCCESS : RunSteps(step.inner.front());
}

CUresult GraphOperation::RunConditional(const GraphConditional& node,
                                        const std::vector<Steps>& bodies) {
  const uint64_t begin_ns = Event::NowNs();
  while (true) {
    const std::optional<size_t> body =
        graphs::BodyFor(node.kind, bodies.size(), node.condition->value());
    if (!body.has_value()) return CUDA_SUCCESS;
    const CUresult result = RunSteps(bodies[*body]);
    if (result != CUDA_SUCCESS || node.kind != graphs::Branch::kWhile) return result;
    if (const CUresult end = MustEnd(begin_ns); end != CUDA_SUCCESS) return end;
  }
}

// A while node ends as a grid does that runs too long.
CUresult GraphOperation::MustEnd(uint64_t begin_ns) const {
  if (cancel_->load(std::memory_order_relaxed)) return CUDA_ERROR_LAUNCH_FAILED;
  const uint64_t watchdog_ms = Driver::Get().config().watchdog_ms;
  if (watchdog_ms == 0 || Event::NowNs() - begin_ns < watchdog_ms * 1'000'000) return CUDA_SUCCESS;
  ReportFault(CUDA_ERROR_LAUNCH_TIMEOUT, stream_,
              "a while node of a graph ran longer than the watchdog's " +
                  std::to_string(watchdog_ms) + " ms");
  return CUDA_ERROR_LAUNCH_TIMEOUT;
}

}  // namespace softgpu
