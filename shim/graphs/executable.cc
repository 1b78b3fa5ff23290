#include "shim/graphs/executable.h"

#include <algorithm>
#include <utility>

#include "shim/graphs/capture.h"
#include "shim/graphs/memory.h"
#include "shim/host_functions.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace shim::graphs {

CUresult Executable::MakeStep(uint64_t node, Work work, Step* step) {
  step->node = node;
  step->shape.type = work.index();
  has_memory_ = has_memory_ || std::holds_alternative<AllocateWork>(work) ||
                std::holds_alternative<FreeWork>(work);
  CUresult result = CUDA_SUCCESS;
  if (const ChildWork* const child = std::get_if<ChildWork>(&work))
    result = MakeInner(*child->graph, step);
  if (const ConditionalWork* const conditional = std::get_if<ConditionalWork>(&work)) {
    const ::graphs::Conditional<GraphUse>& its = *conditional->node;
    step->shape.kind = static_cast<size_t>(its.kind);
    step->shape.bodies = its.bodies.size();
    for (size_t i = 0; i < its.bodies.size() && result == CUDA_SUCCESS; ++i)
      result = MakeInner(*its.bodies[i], step);
  }
  step->work = std::move(work);
  return result;
}

CUresult Executable::MakeInner(const Graph& graph, Step* step) {
  step->inner.emplace_back();
  return MakeSteps(graph, &step->inner.back());
}

CUresult Executable::MakeSteps(const Graph& graph, Steps* steps) {
  auto plan = ::graphs::PlanOf(graph);
  if (!plan.has_value()) return ResultOf(Refusal::kCycle);
  for (::graphs::PlannedNode<GraphUse>& planned : *plan) {
    Step step;
    const CUresult result = MakeStep(planned.node->name(), planned.node->content.work, &step);
    if (result != CUDA_SUCCESS) return result;
    step.shape.dependencies = std::move(planned.dependencies);
    steps->push_back(std::move(step));
  }
  return CUDA_SUCCESS;
}

CUresult Executable::Create(const Graph& graph, cuuint64_t flags,
                            std::shared_ptr<Executable>* made) {
  const std::shared_ptr<Executable> executable = std::make_shared<Executable>(flags);
  {
    base::MutexLock lock(&executable->mutex_);
    executable->objects_ = std::make_unique<UserReferences>(graph.user_objects);
    CUresult result = executable->MakeSteps(graph, &executable->steps_);
    if (result == CUDA_SUCCESS) result = executable->MakePieces();
    if (result != CUDA_SUCCESS) return result;
  }
  executable->value = Objects::Process().executables.Add(executable);
  *made = executable;
  return CUDA_SUCCESS;
}

Executable::~Executable() { GiveUp(std::move(objects_)); }

void Executable::GiveUp(std::unique_ptr<UserReferences> objects) {
  if (objects->empty() || !launched_) return;
  Streams& streams = Streams::Process();
  const Stream* const last =
      last_stream_ == 0 ? streams.Legacy(last_device_) : streams.table.Find(last_stream_);
  if (last == nullptr) return;
  const CUhostFn end = [](void* data) { delete static_cast<UserReferences*>(data); };
  UserReferences* const given = objects.release();
  if (HostFunctions::Process().Launch(*last, end, given) != CUDA_SUCCESS) delete given;
}

// Child graphs are made of their steps, too, which may have changed since. REQUIRES: no conditional
// node.
std::shared_ptr<Graph> Executable::GraphOf(const Steps& steps) {
  const std::shared_ptr<Graph> graph = Graph::Create();
  std::vector<Node*> nodes;
  for (const Step& step : steps) {
    std::vector<Node*> dependencies;
    for (const size_t number : step.shape.dependencies) dependencies.push_back(nodes[number]);
    Work work = step.enabled ? step.work : Work(EmptyWork{});
    ChildWork* const child = std::get_if<ChildWork>(&work);
    if (child != nullptr) child->graph = GraphOf(step.inner.front());
    Node* node = nullptr;
    (void)graph->Add({work, {}, {}}, std::move(dependencies), &node);
    if (child != nullptr) child->graph->Destroy();  // the node has its own copy
    nodes.push_back(node);
  }
  return graph;
}

std::shared_ptr<Graph> Executable::ToGraph() {
  base::MutexLock lock(&mutex_);
  const std::shared_ptr<Graph> graph = GraphOf(steps_);
  graph->user_objects = *objects_;
  return graph;
}

// --- launches ------------------------------------------------------------------------------------

// A launch in another stream than the last one's waits for that stream, unless the last launch is
// known to be over.
CUresult Executable::OrderAfterLast(const Stream& stream) {
  const uint64_t last = std::exchange(last_stream_, stream.value);
  last_device_ = stream.device;
  if (!std::exchange(launched_, true) || last == stream.value) return CUDA_SUCCESS;
  const Stream* const before = Streams::Process().table.Find(last);
  const CUresult done = before != nullptr ? QueryStream(*before) : CUDA_ERROR_NOT_READY;
  return done == CUDA_ERROR_NOT_READY ? Streams::SendJoin(stream.wire) : done;
}

// The nodes of bodies follow their conditional node.
void Executable::Flatten(Steps* steps, const std::vector<uint32_t>& before, FlatNode::Place place,
                         std::vector<FlatNode>* nodes) {
  for (Step& step : *steps) {
    std::vector<uint32_t> dependencies;
    for (const size_t number : step.shape.dependencies)
      dependencies.push_back((*steps)[number].flat);
    if (dependencies.empty()) dependencies = before;
    if (std::holds_alternative<ChildWork>(step.work)) {
      step.flat = FlattenChild(&step.inner.front(), std::move(dependencies), place, nodes);
      continue;
    }
    const bool nothing = !step.enabled || std::holds_alternative<AllocateWork>(step.work) ||
                         std::holds_alternative<FreeWork>(step.work);
    step.flat = static_cast<uint32_t>(nodes->size());
    nodes->push_back({nothing ? nullptr : &step.work, std::move(dependencies), place});
    for (size_t i = 0; i < step.inner.size(); ++i)
      Flatten(&step.inner[i], {}, {step.flat, static_cast<uint32_t>(i)}, nodes);
  }
}

// The child's nodes lie between two empty nodes: one before all of them, and one after.
uint32_t Executable::FlattenChild(Steps* children, std::vector<uint32_t> before,
                                  FlatNode::Place place, std::vector<FlatNode>* nodes) {
  const uint32_t first = static_cast<uint32_t>(nodes->size());
  nodes->push_back({nullptr, std::move(before), place});
  Flatten(children, {first}, place, nodes);
  std::vector<uint32_t> all;
  for (const Step& child : *children) all.push_back(child.flat);
  nodes->push_back({nullptr, std::move(all), place});
  return static_cast<uint32_t>(nodes->size() - 1);
}

CUresult Executable::MakePieces() {
  if (!stale_) return CUDA_SUCCESS;
  std::vector<FlatNode> nodes;
  Flatten(&steps_, {}, {}, &nodes);
  const CUresult result = pieces_.Make(nodes);
  stale_ = result != CUDA_SUCCESS;
  return result;
}

// Whose memory it is changes here, where the launch is put into its stream: the device has nothing
// to do for that.
void Executable::ChangeMemory(const Steps& steps) {
  for (const Step& step : steps) {
    if (!step.enabled) continue;
    if (const AllocateWork* const allocate = std::get_if<AllocateWork>(&step.work))
      allocate->memory->Allocate();
    if (const FreeWork* const free = std::get_if<FreeWork>(&step.work))
      GraphMemory::Free(free->address);
    for (const Steps& inner : step.inner) ChangeMemory(inner);
  }
}

CUresult Executable::Launch(const Stream& stream) {
  base::MutexLock lock(&mutex_);
  CUresult result = MakePieces();
  if (result == CUDA_SUCCESS) result = OrderAfterLast(stream);
  if (result == CUDA_SUCCESS) result = pieces_.Launch(stream);
  if (result == CUDA_SUCCESS && has_memory_) ChangeMemory(steps_);
  return result == CUDA_SUCCESS ? Throttle(stream) : result;
}

std::optional<CUresult> CaptureLaunch(const Stream& stream, Executable* executable) {
  if (!AllCaptures().Has(CaptureStreamOf(stream))) return CaptureWork(stream, EmptyWork{});
  if (executable->HasConditional()) {
    AllCaptures().Invalidate(CaptureStreamOf(stream));
    return ResultOf(Refusal::kConditionalCopied);
  }
  const std::shared_ptr<Graph> child = executable->ToGraph();
  const std::optional<CUresult> result = CaptureWork(stream, ChildWork{child});
  child->Destroy();  // the node has its own copy
  return result;
}

// --- changes -------------------------------------------------------------------------------------

Executable::Step* Executable::FindIn(Steps* steps, uint64_t node) {
  for (Step& step : *steps) {
    if (step.node == node) return &step;
    for (Steps& inner : step.inner) {
      if (Step* const inside = FindIn(&inner, node); inside != nullptr) return inside;
    }
  }
  return nullptr;
}

CUresult Executable::SetWork(const void* node, Work work) {
  base::MutexLock lock(&mutex_);
  Step* const step = FindStep(node);
  if (step == nullptr || step->work.index() != work.index()) return CUDA_ERROR_INVALID_VALUE;
  Step changed;
  const CUresult result = MakeStep(step->node, std::move(work), &changed);
  if (result != CUDA_SUCCESS) return result;
  KeepInnerNames(*step, &changed);
  return Change(step, std::move(changed));
}

// A kernel's parameters change where they are; other changes of what the worker has make the pieces
// anew, at the next launch.
CUresult Executable::Change(Step* step, Step changed) {
  const KernelWork* const before = std::get_if<KernelWork>(&step->work);
  KernelWork* const after = std::get_if<KernelWork>(&changed.work);
  const bool in_place = before != nullptr && after != nullptr && !stale_ && step->enabled &&
                        before->function == after->function;
  if (!in_place && (IsForDevice(step->work) || IsForDevice(changed.work) ||
                    std::holds_alternative<ChildWork>(step->work))) {
    stale_ = true;
  }
  if (in_place) {
    after->cooperative = before->cooperative;
    if (*before == *after) return CUDA_SUCCESS;
  }
  step->work = std::move(changed.work);
  step->inner = std::move(changed.inner);
  return in_place ? pieces_.SetKernel(step->flat, std::get<KernelWork>(step->work)) : CUDA_SUCCESS;
}

// A disabled node keeps its place in the order: the client makes the pieces of the graph anew, with
// an empty node there.
CUresult Executable::SetEnabled(const void* node, bool enabled) {
  base::MutexLock lock(&mutex_);
  Step* const step = FindStep(node);
  if (step == nullptr || !step->inner.empty()) return CUDA_ERROR_INVALID_VALUE;
  stale_ = stale_ || step->enabled != enabled;
  step->enabled = enabled;
  return CUDA_SUCCESS;
}

CUresult Executable::GetEnabled(const void* node, bool* enabled) {
  base::MutexLock lock(&mutex_);
  const Step* const step = FindStep(node);
  if (step == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = step->enabled;
  return CUDA_SUCCESS;
}

// The pure comparison knows shapes alone, not what the steps do.
std::vector<::graphs::StepShape> Executable::ShapesOf(const Steps& steps) {
  std::vector<::graphs::StepShape> shapes;
  for (const Step& step : steps) shapes.push_back(step.shape);
  return shapes;
}

// `at`: the node of `after` that differs first, inside child graphs and bodies as well.
::graphs::Difference Executable::Compare(const Steps& before, const Steps& after, uint64_t* at) {
  size_t number = 0;
  ::graphs::Difference difference = ::graphs::Compare(ShapesOf(before), ShapesOf(after), &number);
  if (number < after.size()) *at = after[number].node;
  for (size_t i = 0; i < before.size() && difference == ::graphs::Difference::kNone; ++i) {
    const std::vector<Steps>&old = before[i].inner, &now = after[i].inner;
    for (size_t j = 0; j < old.size() && difference == ::graphs::Difference::kNone; ++j)
      difference = Compare(old[j], now[j], at);
  }
  return difference;
}

// Later calls go on naming the first graph's nodes, whose shape `after` has.
void Executable::KeepNames(const Steps& before, Steps* after) {
  for (size_t i = 0; i < before.size() && i < after->size(); ++i) {
    (*after)[i].node = before[i].node;
    (*after)[i].enabled = before[i].enabled;
    KeepInnerNames(before[i], &(*after)[i]);
  }
}

void Executable::KeepInnerNames(const Step& before, Step* after) {
  for (size_t i = 0; i < before.inner.size() && i < after->inner.size(); ++i)
    KeepNames(before.inner[i], &after->inner[i]);
}

// Child graphs have no conditional nodes.
bool Executable::HasConditional() {
  base::MutexLock lock(&mutex_);
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
    return std::holds_alternative<ConditionalWork>(step.work);
  });
}

CUresult Executable::Update(const Graph& graph, CUgraphExecUpdateResultInfo* info) {
  *info = {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr, nullptr};
  Steps updated;
  if (MakeSteps(graph, &updated) != CUDA_SUCCESS) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  base::MutexLock lock(&mutex_);
  uint64_t at = 0;
  const ::graphs::Difference difference = Compare(steps_, updated, &at);
  if (difference != ::graphs::Difference::kNone) {
    info->errorNode = reinterpret_cast<CUgraphNode>(at);
    if (difference == ::graphs::Difference::kType)
      info->result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  KeepNames(steps_, &updated);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const CUresult result = Change(&steps_[i], std::move(updated[i]));
    if (result != CUDA_SUCCESS) return result;
  }
  GiveUp(std::exchange(objects_, std::make_unique<UserReferences>(graph.user_objects)));
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  return CUDA_SUCCESS;
}

}  // namespace shim::graphs
