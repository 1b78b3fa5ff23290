#include "shim/graphs/graph.h"

#include <algorithm>
#include <utility>

namespace shim::graphs {

CUgraphNodeType TypeOf(const Work& work) {
  // By the order of Work's alternatives.
  static constexpr CUgraphNodeType kTypes[] = {
      CU_GRAPH_NODE_TYPE_KERNEL,       CU_GRAPH_NODE_TYPE_MEMCPY,
      CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_HOST,
      CU_GRAPH_NODE_TYPE_GRAPH,        CU_GRAPH_NODE_TYPE_EMPTY,
      CU_GRAPH_NODE_TYPE_WAIT_EVENT,   CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_KERNEL};
  static_assert(std::size(kTypes) == std::variant_size_v<Work>);
  return kTypes[work.index()];
}

Objects& Objects::Process() {
  static Objects* const objects = new Objects;
  return *objects;
}

std::shared_ptr<Graph> Graph::Create() {
  const std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Objects::Process().graphs.Add(graph);
  return graph;
}

Graph::~Graph() {
  for (const auto& [object, count] : user_objects) object->Release(count);
}

CUresult Graph::Add(Work work, std::vector<Node*> dependencies, Node** node) {
  for (const Node* const dependency : dependencies) {
    if (!Owns(dependency)) return CUDA_ERROR_INVALID_VALUE;
  }
  if (ChildWork* const child = std::get_if<ChildWork>(&work)) child->graph = child->graph->Clone();
  nodes_.push_back(std::make_shared<Node>(weak_from_this(), std::move(work)));
  *node = nodes_.back().get();
  (*node)->dependencies = std::move(dependencies);
  (*node)->position = nodes_.size() - 1;
  Objects::Process().nodes.Add(nodes_.back());
  return CUDA_SUCCESS;
}

void Graph::Remove(Node* node) {
  const std::shared_ptr<Node> keep = Objects::Process().nodes.Remove(node->value);
  for (const std::shared_ptr<Node>& own : nodes_) std::erase(own->dependencies, node);
  nodes_.erase(nodes_.begin() + static_cast<ptrdiff_t>(node->position));
  for (size_t i = node->position; i < nodes_.size(); ++i) nodes_[i]->position = i;
}

CUresult Graph::AddEdge(Node* from, Node* to) {
  if (!Owns(from) || !Owns(to) || from == to) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Node*>& dependencies = to->dependencies;
  if (std::find(dependencies.begin(), dependencies.end(), from) != dependencies.end())
    return CUDA_ERROR_INVALID_VALUE;
  dependencies.push_back(from);
  return CUDA_SUCCESS;
}

CUresult Graph::RemoveEdge(Node* from, Node* to) {
  return Owns(to) && std::erase(to->dependencies, from) != 0 ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
}

std::vector<std::pair<Node*, Node*>> Graph::Edges() const {
  std::vector<std::pair<Node*, Node*>> edges;
  for (const std::shared_ptr<Node>& node : nodes_) {
    for (Node* const dependency : node->dependencies) edges.emplace_back(dependency, node.get());
  }
  return edges;
}

std::vector<Node*> Graph::DependentsOf(const Node* node) const {
  std::vector<Node*> dependents;
  for (const std::shared_ptr<Node>& other : nodes_) {
    const std::vector<Node*>& own = other->dependencies;
    if (std::find(own.begin(), own.end(), node) != own.end()) dependents.push_back(other.get());
  }
  return dependents;
}

// Kahn's algorithm, each round in the order of addition: one round where edges lead forward.
bool Graph::Order(std::vector<Node*>* order) const {
  std::vector<bool> done(nodes_.size());
  order->clear();
  while (order->size() < nodes_.size()) {
    const size_t before = order->size();
    for (const std::shared_ptr<Node>& node : nodes_) {
      if (done[node->position]) continue;
      const bool ready =
          std::all_of(node->dependencies.begin(), node->dependencies.end(),
                      [&](const Node* dependency) { return done[dependency->position]; });
      if (!ready) continue;
      done[node->position] = true;
      order->push_back(node.get());
    }
    if (order->size() == before) return false;
  }
  return true;
}

std::shared_ptr<Graph> Graph::Clone() const {
  const std::shared_ptr<Graph> copy = Create();
  for (const std::shared_ptr<Node>& node : nodes_) {
    Node* own = nullptr;
    (void)copy->Add(node->work, {}, &own);
    own->original = node->value;
    own->attributes = node->attributes;
  }
  for (const std::shared_ptr<Node>& node : nodes_) {
    for (const Node* const dependency : node->dependencies) {
      copy->nodes_[node->position]->dependencies.push_back(
          copy->nodes_[dependency->position].get());
    }
  }
  copy->user_objects = user_objects;
  for (const auto& [object, count] : copy->user_objects) object->Retain(count);
  return copy;
}

void Graph::Destroy() {
  Objects& objects = Objects::Process();
  const std::shared_ptr<Graph> keep = objects.graphs.Remove(value);
  for (const std::shared_ptr<Node>& node : nodes_) {
    objects.nodes.Remove(node->value);
    if (ChildWork* const child = std::get_if<ChildWork>(&node->work)) child->graph->Destroy();
  }
}

void UserObject::Release(unsigned count) {
  unsigned held = references_.load();
  while (!references_.compare_exchange_weak(held, held - std::min(count, held))) {
  }
  if (held != 0 && held <= count) destroy_(pointer_);
}

UserReferences::UserReferences(Counts counts) : counts_(std::move(counts)) {
  for (const auto& [object, count] : counts_) object->Retain(count);
}

UserReferences::~UserReferences() {
  for (const auto& [object, count] : counts_) object->Release(count);
}

}  // namespace shim::graphs
