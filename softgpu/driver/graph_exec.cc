#include "softgpu/driver/graph_exec.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/graph_operation.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/virtual_device.h"

namespace softgpu {
CUresult GraphExec::MakeStep(CUgraphNode node, Work work, std::shared_ptr<Step>* out) {
  const std::shared_ptr<Step> step = std::make_shared<Step>();
  step->node = node;
  step->shape.type = work.index();
  std::unique_ptr<Operation> operation;
  CUresult result = MakeOperationOf(work, context_, &operation);
  if (result != CUDA_SUCCESS) return result;
  step->operation = std::move(operation);
  if (const ChildWork* const child = std::get_if<ChildWork>(&work))
    result = MakeInner(*child->graph, step.get());
  if (const ConditionalWork* const conditional = std::get_if<ConditionalWork>(&work)) {
    const GraphConditional& node = *conditional->node;
    step->shape.kind = static_cast<size_t>(node.kind);
    step->shape.bodies = node.bodies.size();
    for (size_t i = 0; i < node.bodies.size() && result == CUDA_SUCCESS; ++i)
      result = MakeInner(*node.bodies[i], step.get());
    if (VirtualDevice::Get() != nullptr) {
      return Fail(CUDA_ERROR_NOT_SUPPORTED,
                  "conditional nodes have no place in virtual time: what they run is not known "
                  "when the graph is launched");
    }
  }
  step->work = std::move(work);
  *out = step;
  return result;
}

// One more list of steps inside the step: of its child graph, or of the next body.
CUresult GraphExec::MakeInner(const Graph& graph, Step* step) {
  step->inner.emplace_back();
  return MakeSteps(graph, &step->inner.back());
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

// Child graphs are made of their steps, too, which may have changed since. REQUIRES: no conditional
// node.
std::shared_ptr<Graph> GraphExec::GraphOf(const Steps& steps) {
  const std::shared_ptr<Graph> graph = Graph::Create();
  std::vector<GraphNode*> nodes;
  for (const std::shared_ptr<Step>& step : steps) {
    std::vector<GraphNode*> dependencies;
    for (const size_t number : step->shape.dependencies) dependencies.push_back(nodes[number]);
    Work work = step->enabled ? step->work : Work(EmptyWork{});
    ChildWork* const child = std::get_if<ChildWork>(&work);
    if (child != nullptr) child->graph = GraphOf(step->inner.front());
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
      std::make_unique<GraphOperation>(steps_, context_->cancel(), stream->handle(), &last_end_);
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
    for (const Steps& inner : step->inner) {
      const std::shared_ptr<const Step> inside = FindIn(inner, node);
      if (inside != nullptr) return inside;
    }
  }
  return nullptr;
}

std::shared_ptr<const GraphExec::Step> GraphExec::FindStep(CUgraphNode node) {
  const std::shared_ptr<const Step> step = FindIn(steps_, node);
  if (step == nullptr)
    Fail(CUDA_ERROR_INVALID_VALUE, "the node is not part of what was instantiated");
  return step;
}

// Puts `changed` where the step of its node is. The child graphs and bodies around the node are
// copied, since launches in flight keep theirs.
bool GraphExec::Replace(const std::shared_ptr<Step>& changed, Steps* steps) {
  for (std::shared_ptr<Step>& step : *steps) {
    if (step->node == changed->node) {
      step = changed;
      return true;
    }
    for (size_t i = 0; i < step->inner.size(); ++i) {
      Steps inner = step->inner[i];
      if (!Replace(changed, &inner)) continue;
      step = std::make_shared<Step>(*step);
      step->inner[i] = std::move(inner);
      return true;
    }
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
  KeepInnerNames(*step, changed.get());
  Replace(changed, &steps_);
  return CUDA_SUCCESS;
}

CUresult GraphExec::SetEnabled(CUgraphNode node, bool enabled) {
  base::MutexLock lock(&mutex_);
  const std::shared_ptr<const Step> step = FindStep(node);
  if (step == nullptr || !step->inner.empty()) return CUDA_ERROR_INVALID_VALUE;
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

// `at`: the node of `after` that differs first, inside child graphs and bodies as well.
graphs::Difference GraphExec::Compare(const Steps& before, const Steps& after, CUgraphNode* at) {
  size_t number = 0;
  graphs::Difference difference = graphs::Compare(ShapesOf(before), ShapesOf(after), &number);
  if (difference != graphs::Difference::kNone && number < after.size()) *at = after[number]->node;
  for (size_t i = 0; i < before.size() && difference == graphs::Difference::kNone; ++i) {
    const std::vector<Steps>&old = before[i]->inner, &now = after[i]->inner;
    for (size_t j = 0; j < old.size() && difference == graphs::Difference::kNone; ++j)
      difference = Compare(old[j], now[j], at);
  }
  return difference;
}

// Later calls go on naming the first graph's nodes, whose shape `after` has.
void GraphExec::KeepNames(const Steps& before, Steps* after) {
  for (size_t i = 0; i < before.size() && i < after->size(); ++i) {
    (*after)[i]->node = before[i]->node;
    (*after)[i]->enabled = before[i]->enabled;
    KeepInnerNames(*before[i], (*after)[i].get());
  }
}

// Bodies pair by their order, which an update keeps.
void GraphExec::KeepInnerNames(const Step& before, Step* after) {
  for (size_t i = 0; i < before.inner.size() && i < after->inner.size(); ++i)
    KeepNames(before.inner[i], &after->inner[i]);
}

// Child graphs have no conditional nodes.
bool GraphExec::HasConditional() {
  base::MutexLock lock(&mutex_);
  return std::any_of(steps_.begin(), steps_.end(), [](const std::shared_ptr<Step>& step) {
    return std::holds_alternative<ConditionalWork>(step->work);
  });
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
