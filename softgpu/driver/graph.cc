#include "softgpu/driver/graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"

namespace softgpu {

std::shared_ptr<Graph> Graph::Create() {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Driver::Get().graphs.Add(graph);
  return graph;
}

Graph::~Graph() {
  for (const auto& [object, count] : user_objects) object->Release(count);
}

bool Graph::Contains(const GraphNode* node) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](const std::shared_ptr<GraphNode>& own) { return own.get() == node; });
}

CUresult Graph::Add(Work work, const std::vector<GraphNode*>& dependencies, GraphNode** node) {
  for (const GraphNode* const dependency : dependencies) {
    if (!Contains(dependency)) {
      return Fail(CUDA_ERROR_INVALID_VALUE, "a dependency is no node of this graph");
    }
  }
  if (ChildWork* const child = std::get_if<ChildWork>(&work)) {
    child->graph = child->graph->Clone();
    Driver::Get().graphs.Add(child->graph);
    for (const std::shared_ptr<GraphNode>& own : child->graph->nodes_)
      Driver::Get().graph_nodes.Add(own);
  }
  nodes_.push_back(std::make_shared<GraphNode>(weak_from_this(), std::move(work)));
  nodes_.back()->dependencies = dependencies;
  Driver::Get().graph_nodes.Add(nodes_.back());
  *node = nodes_.back().get();
  return CUDA_SUCCESS;
}

void Graph::Remove(GraphNode* node) {
  Driver::Get().graph_nodes.Remove(node);
  for (const std::shared_ptr<GraphNode>& own : nodes_) std::erase(own->dependencies, node);
  std::erase_if(nodes_, [&](const std::shared_ptr<GraphNode>& own) { return own.get() == node; });
}

CUresult Graph::AddEdge(GraphNode* from, GraphNode* to) {
  if (!Contains(from) || !Contains(to) || from == to) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "an edge joins two nodes of one graph");
  }
  std::vector<GraphNode*>& dependencies = to->dependencies;
  if (std::find(dependencies.begin(), dependencies.end(), from) != dependencies.end()) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the edge exists already");
  }
  dependencies.push_back(from);
  return CUDA_SUCCESS;
}

CUresult Graph::RemoveEdge(GraphNode* from, GraphNode* to) {
  if (!Contains(to) || std::erase(to->dependencies, from) == 0) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "there is no such edge");
  }
  return CUDA_SUCCESS;
}

std::vector<std::pair<GraphNode*, GraphNode*>> Graph::Edges() const {
  std::vector<std::pair<GraphNode*, GraphNode*>> edges;
  for (const std::shared_ptr<GraphNode>& node : nodes_) {
    for (GraphNode* const dependency : node->dependencies)
      edges.emplace_back(dependency, node.get());
  }
  return edges;
}

std::vector<GraphNode*> Graph::DependentsOf(const GraphNode* node) const {
  std::vector<GraphNode*> dependents;
  for (const std::shared_ptr<GraphNode>& other : nodes_) {
    const std::vector<GraphNode*>& own = other->dependencies;
    if (std::find(own.begin(), own.end(), node) != own.end()) dependents.push_back(other.get());
  }
  return dependents;
}

// Kahn's algorithm, each round in the order of addition.
bool Graph::Order(std::vector<std::shared_ptr<GraphNode>>* order) const {
  std::set<const GraphNode*> done;
  order->clear();
  while (order->size() < nodes_.size()) {
    const size_t before = order->size();
    for (const std::shared_ptr<GraphNode>& node : nodes_) {
      if (done.count(node.get()) != 0) continue;
      const bool ready =
          std::all_of(node->dependencies.begin(), node->dependencies.end(),
                      [&](GraphNode* dependency) { return done.count(dependency) != 0; });
      if (!ready) continue;
      done.insert(node.get());
      order->push_back(node);
    }
    if (order->size() == before) return false;
  }
  return true;
}

std::shared_ptr<Graph> Graph::Clone() const {
  std::shared_ptr<Graph> copy = std::make_shared<Graph>();
  std::map<const GraphNode*, GraphNode*> of_original;
  for (const std::shared_ptr<GraphNode>& node : nodes_) {
    const std::shared_ptr<GraphNode> own = std::make_shared<GraphNode>(copy, node->work);
    if (ChildWork* const child = std::get_if<ChildWork>(&own->work))
      child->graph = child->graph->Clone();
    own->original = node.get();
    own->attributes = node->attributes;
    copy->nodes_.push_back(own);
    of_original[node.get()] = own.get();
  }
  for (const std::shared_ptr<GraphNode>& node : nodes_) {
    for (const GraphNode* const dependency : node->dependencies) {
      of_original[node.get()]->dependencies.push_back(of_original[dependency]);
    }
  }
  copy->user_objects = user_objects;
  for (const auto& [object, count] : copy->user_objects) object->Retain(count);
  return copy;
}

void Graph::Destroy() {
  const std::shared_ptr<Graph> keep = Driver::Get().graphs.Remove(this);
  for (const std::shared_ptr<GraphNode>& node : nodes_) {
    Driver::Get().graph_nodes.Remove(node.get());
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

}  // namespace softgpu
