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

// Child graphs are made of their steps, too, which may have changed since.
std::shared_ptr<Graph> GraphExec::GraphOf(const Steps& steps) {
  const std::shared_ptr<Graph> graph = Graph::Create();
  std::vector<GraphNode*> nodes;
  for (const std::shared_ptr<Step>& step : steps) {
    std::vector<GraphNode*> dependencies;
    for (const size_t number : step->shape.dependencies) dependencies.push_back(nodes[number]);
    Work work = step->enabled ? step->work : Work(EmptyWork{});
    ChildWork* const child = std::get_if<ChildWork>(&work);
    if (child != nullptr) child->graph = GraphOf(step->children);
    GraphNode* node = nullptr;
    (void)graph->Add({work, {}, {}}, std::move(dependencies), &node);
    if (child != nullptr) child->graph->Destroy();  // the node has its own copy
    nodes.push_back(node);
  }
  return graph;
}

std::shared_ptr<Graph> GraphExec::ToGraph() {
  base::MutexLock lock(&mutex_);
  const std::shared_ptr<Graph> graph = GraphOf(steps_);
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

std::shared_ptr<const GraphExec::Step> GraphExec::FindIn(const Steps& steps, CUgraphNode node) {
  for (const std::shared_ptr<Step>& step : steps) {
    if (step->node == node) return step;
    const std::shared_ptr<const Step> inside = FindIn(step->children, node);
    if (inside != nullptr) return inside;
  }
  return nullptr;
}

std::shared_ptr<const GraphExec::Step> GraphExec::FindStep(CUgraphNode node) {
  const std::shared_ptr<const Step> step = FindIn(steps_, node);
  if (step == nullptr)
    Fail(CUDA_ERROR_INVALID_VALUE, "the node is not part of what was instantiated");
  return step;
}

// Puts `changed` where the step of its node is. The child graphs around the node are copied, since
// launches in flight keep theirs.
bool GraphExec::Replace(const std::shared_ptr<Step>& changed, Steps* steps) {
  for (std::shared_ptr<Step>& step : *steps) {
    if (step->node == changed->node) {
      step = changed;
      return true;
    }
    Steps children = step->children;
    if (!Replace(changed, &children)) continue;
    step = std::make_shared<Step>(*step);
    step->children = std::move(children);
    return true;
  }
  return false;
}

CUresult GraphExec::SetWork(CUgraphNode node, Work work) {
  base::MutexLock lock(&mutex_);
  const std::shared_ptr<const Step> step = FindStep(node);
  if (step == nullptr || step->work.index() != work.index()) return CUDA_ERROR_INVALID_VALUE;
  if (KernelWork* const kernel = std::get_if<KernelWork>(&work); kernel != nullptr)
    kernel->cooperative = std::get<KernelWork>(step->work).cooperative;  // an attribute
  std::shared_ptr<Step> changed;
  const CUresult result = MakeStep(node, std::move(work), &changed);
  if (result != CUDA_SUCCESS) return result;
  changed->shape.dependencies = step->shape.dependencies;
  changed->enabled = step->enabled;
  changed->objects = step->objects;
  KeepNames(step->children, &changed->children);
  Replace(changed, &steps_);
  return CUDA_SUCCESS;
}

CUresult GraphExec::SetEnabled(CUgraphNode node, bool enabled) {
  base::MutexLock lock(&mutex_);
  const std::shared_ptr<const Step> step = FindStep(node);
  if (step == nullptr || std::holds_alternative<ChildWork>(step->work))
    return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Step> changed = std::make_shared<Step>(*step);
  changed->enabled = enabled;
  Replace(changed, &steps_);
  return CUDA_SUCCESS;
}

CUresult GraphExec::GetEnabled(CUgraphNode node, bool* enabled) {
  base::MutexLock lock(&mutex_);
  const std::shared_ptr<const Step> step = FindStep(node);
  if (step == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = step->enabled;
  return CUDA_SUCCESS;
}

std::vector<graphs::StepShape> GraphExec::ShapesOf(const Steps& steps) {
  std::vector<graphs::StepShape> shapes;
  for (const std::shared_ptr<Step>& step : steps) shapes.push_back(step->shape);
  return shapes;
}

// `at`: the node of `after` that differs first, in the child graphs as well.
graphs::Difference GraphExec::Compare(const Steps& before, const Steps& after, CUgraphNode* at) {
  size_t number = 0;
  graphs::Difference difference = graphs::Compare(ShapesOf(before), ShapesOf(after), &number);
  if (difference != graphs::Difference::kNone && number < after.size()) *at = after[number]->node;
  for (size_t i = 0; i < before.size() && difference == graphs::Difference::kNone; ++i)
    difference = Compare(before[i]->children, after[i]->children, at);
  return difference;
}

// Later calls go on naming the first graph's nodes, whose shape `after` has.
void GraphExec::KeepNames(const Steps& before, Steps* after) {
  for (size_t i = 0; i < before.size() && i < after->size(); ++i) {
    (*after)[i]->node = before[i]->node;
    (*after)[i]->enabled = before[i]->enabled;
    KeepNames(before[i]->children, &(*after)[i]->children);
  }
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
  const graphs::Difference difference = Compare(steps_, updated, &info->errorNode);
  if (difference == graphs::Difference::kType)
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (difference != graphs::Difference::kNone) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  KeepNames(steps_, &updated);
  steps_ = std::move(updated);
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  return CUDA_SUCCESS;
}

}  // namespace softgpu
