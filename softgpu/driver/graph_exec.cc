#include "softgpu/driver/graph_exec.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/find.h"
#include "base/mutex.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/stream.h"

namespace softgpu {
namespace {

using scheduler::streams::Timeline;
using Moment = Timeline::Moment;

}  // namespace

// One launch.
class GraphOperation final : public Operation {
 public:
  // `last_end`: when the launch before this one ends, then when this one does; Enter alone uses it.
  GraphOperation(GraphExec::Steps steps, CUstream stream, Moment* last_end)
      : Operation(PlaceOf(steps)), steps_(std::move(steps)), stream_(stream), last_end_(last_end) {
    Collect(steps_);
  }

  CUresult Run() override { return RunSteps(steps_); }
  void Skip(CUresult) override {
    for (const auto& [step, mark] : marks_) mark->at_ns = Event::NowNs();
  }

  // The nodes begin as their edges say, whatever the order in which they run.
  Moment Enter(Timeline* timeline, const Moment& after) override {
    return *last_end_ = EnterSteps(steps_, timeline, timeline->Join({after, *last_end_}));
  }

  // Events that this launch records, and what waits mean by them.
  const std::map<const GraphExec::Step*, std::shared_ptr<Event::Mark>>& marks() const {
    return marks_;
  }

 private:
  static Place PlaceOf(const GraphExec::Steps& steps) {
    for (const std::shared_ptr<GraphExec::Step>& step : steps) {
      const bool here =
          step->operation != nullptr && step->operation->place() == Place::kStreamThread;
      if (here || PlaceOf(step->children) == Place::kStreamThread) return Place::kStreamThread;
    }
    return Place::kAnywhere;
  }

  void Collect(const GraphExec::Steps& steps) {
    for (const std::shared_ptr<GraphExec::Step>& step : steps) {
      if (!step->enabled) continue;
      Collect(step->children);
      if (std::holds_alternative<EventRecordWork>(step->work)) {
        marks_[step.get()] = std::make_shared<Event::Mark>();
      } else if (const EventWaitWork* const wait = std::get_if<EventWaitWork>(&step->work)) {
        const std::shared_ptr<Event::Mark> mark = wait->event->mark();
        if (mark == nullptr) continue;
        awaited_[step.get()] = mark->moment;  // the event may be recorded again
        dependencies.insert(dependencies.end(), mark->dependencies.begin(),
                            mark->dependencies.end());
      }
    }
  }

  Moment EnterSteps(const GraphExec::Steps& steps, Timeline* timeline, const Moment& after) {
    std::vector<Moment> ends;
    for (const std::shared_ptr<GraphExec::Step>& step : steps) {
      std::vector<Moment> before = {after};
      for (const size_t number : step->shape.dependencies) before.push_back(ends[number]);
      ends.push_back(EnterStep(*step, timeline, std::move(before)));
    }
    ends.push_back(after);
    return timeline->Join(ends);
  }

  Moment EnterStep(const GraphExec::Step& step, Timeline* timeline, std::vector<Moment> before) {
    const Moment* const awaited = base::FindOrNull(awaited_, &step);
    if (awaited != nullptr) before.push_back(*awaited);
    const Moment begin = timeline->Join(before);
    // A step that is switched off still stands between its neighbours.
    if (!step.enabled) return begin;
    const std::shared_ptr<Event::Mark>* const mark = base::FindOrNull(marks_, &step);
    if (mark != nullptr) (*mark)->moment = begin;
    if (!step.children.empty()) return EnterSteps(step.children, timeline, begin);
    return step.operation != nullptr ? step.operation->Enter(timeline, begin) : begin;
  }

  CUresult RunSteps(const GraphExec::Steps& steps) {
    for (const std::shared_ptr<GraphExec::Step>& step : steps) {
      if (!step->enabled) continue;
      CUresult result = RunSteps(step->children);
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

  const GraphExec::Steps steps_;
  const CUstream stream_;
  Moment* const last_end_;
  std::map<const GraphExec::Step*, std::shared_ptr<Event::Mark>> marks_;
  std::map<const GraphExec::Step*, Moment> awaited_;  // by steps that wait for events
};

CUresult GraphExec::MakeStep(CUgraphNode node, Work work, std::shared_ptr<Step>* out) {
  const std::shared_ptr<Step> step = std::make_shared<Step>();
  step->node = node;
  step->shape.type = work.index();
  std::unique_ptr<Operation> operation;
  CUresult result = MakeOperationOf(work, context_, &operation);
  if (result != CUDA_SUCCESS) return result;
  step->operation = std::move(operation);
  if (const ChildWork* const child = std::get_if<ChildWork>(&work)) {
    result = MakeSteps(*child->graph, &step->children);
  }
  step->work = std::move(work);
  *out = step;
  return result;
}

CUresult GraphExec::MakeSteps(const Graph& graph, Steps* steps) {
  auto plan = graphs::PlanOf(graph);
  if (!plan.has_value()) return ResultOf(graphs::Refusal::kCycle);
  const std::shared_ptr<const UserReferences> objects =
      std::make_shared<UserReferences>(graph.user_objects);
  for (graphs::PlannedNode<GraphUse>& planned : *plan) {
    std::shared_ptr<Step> step;
    const CUresult result = MakeStep(HandleOf(*planned.node), planned.node->content.work, &step);
    if (result != CUDA_SUCCESS) return result;
    step->shape.dependencies = std::move(planned.dependencies);
    step->objects = objects;
    steps->push_back(step);
  }
  return CUDA_SUCCESS;
}

CUresult GraphExec::Create(const Graph& graph, const std::shared_ptr<Context>& context,
                           cuuint64_t flags, std::shared_ptr<GraphExec>* exec) {
  const std::shared_ptr<GraphExec> made = std::make_shared<GraphExec>(context, flags);
  const CUresult result = made->MakeSteps(graph, &made->steps_);
  if (result == CUDA_SUCCESS) *exec = made;
  return result;
}

std::shared_ptr<Graph> GraphExec::ToGraph() {
  const std::shared_ptr<Graph> graph = Graph::Create();
  base::MutexLock lock(&mutex_);
  std::vector<GraphNode*> nodes;
  for (const std::shared_ptr<Step>& step : steps_) {
    std::vector<GraphNode*> dependencies;
    for (const size_t number : step->shape.dependencies) dependencies.push_back(nodes[number]);
    GraphNode* node = nullptr;
    (void)graph->Add({step->enabled ? step->work : Work(EmptyWork{}), {}, {}},
                     std::move(dependencies), &node);
    nodes.push_back(node);
  }
  if (!steps_.empty()) graph->user_objects = *steps_.front()->objects;
  return graph;
}

CUresult GraphExec::Launch(const std::shared_ptr<Stream>& stream) {
  base::MutexLock lock(&mutex_);
  std::unique_ptr<GraphOperation> operation =
      std::make_unique<GraphOperation>(steps_, stream->handle(), &last_end_);
  if (last_launch_.stream != nullptr && last_launch_.stream != stream &&
      !last_launch_.stream->Done(last_launch_.sequence)) {
    operation->dependencies.push_back(last_launch_);
  }
  const std::map<const Step*, std::shared_ptr<Event::Mark>> marks = operation->marks();
  const uint64_t sequence = stream->context()->Submit(stream, std::move(operation));
  last_launch_ = {stream, sequence};
  for (const auto& [step, mark] : marks) {
    mark->dependencies.push_back(last_launch_);
    std::get<EventRecordWork>(step->work).event->SetMark(mark);
  }
  return CUDA_SUCCESS;
}

std::shared_ptr<GraphExec::Step>* GraphExec::FindStep(CUgraphNode node) {
  for (std::shared_ptr<Step>& step : steps_) {
    if (step->node == node) return &step;
  }
  Fail(CUDA_ERROR_INVALID_VALUE, "the node is not part of what was instantiated");
  return nullptr;
}

CUresult GraphExec::SetWork(CUgraphNode node, Work work) {
  base::MutexLock lock(&mutex_);
  std::shared_ptr<Step>* const step = FindStep(node);
  if (step == nullptr || (*step)->work.index() != work.index()) return CUDA_ERROR_INVALID_VALUE;
  if (KernelWork* const kernel = std::get_if<KernelWork>(&work); kernel != nullptr)
    kernel->cooperative = std::get<KernelWork>((*step)->work).cooperative;  // an attribute
  std::shared_ptr<Step> changed;
  const CUresult result = MakeStep(node, std::move(work), &changed);
  if (result != CUDA_SUCCESS) return result;
  changed->shape.dependencies = (*step)->shape.dependencies;
  changed->enabled = (*step)->enabled;
  changed->objects = (*step)->objects;
  *step = std::move(changed);
  return CUDA_SUCCESS;
}

CUresult GraphExec::SetEnabled(CUgraphNode node, bool enabled) {
  base::MutexLock lock(&mutex_);
  std::shared_ptr<Step>* const step = FindStep(node);
  if (step == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Step> changed = std::make_shared<Step>(**step);
  changed->enabled = enabled;
  *step = changed;
  return CUDA_SUCCESS;
}

CUresult GraphExec::GetEnabled(CUgraphNode node, bool* enabled) {
  base::MutexLock lock(&mutex_);
  std::shared_ptr<Step>* const step = FindStep(node);
  if (step == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = (*step)->enabled;
  return CUDA_SUCCESS;
}

std::vector<graphs::StepShape> GraphExec::ShapesOf(const Steps& steps) {
  std::vector<graphs::StepShape> shapes;
  for (const std::shared_ptr<Step>& step : steps) shapes.push_back(step->shape);
  return shapes;
}

CUresult GraphExec::Update(const Graph& graph, CUgraphExecUpdateResultInfo* info) {
  *info = {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr, nullptr};
  Steps updated;
  const CUresult result = MakeSteps(graph, &updated);
  if (result != CUDA_SUCCESS) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  base::MutexLock lock(&mutex_);
  size_t at = 0;
  const graphs::Difference difference = graphs::Compare(ShapesOf(steps_), ShapesOf(updated), &at);
  if (at < updated.size()) info->errorNode = updated[at]->node;
  if (difference == graphs::Difference::kType)
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (difference != graphs::Difference::kNone) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  for (size_t i = 0; i < steps_.size(); ++i) {
    updated[i]->node = steps_[i]->node;  // later calls go on naming the first graph's nodes
    updated[i]->enabled = steps_[i]->enabled;
  }
  steps_ = std::move(updated);
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  return CUDA_SUCCESS;
}

}  // namespace softgpu
