// A program's graph before it is instantiated: nodes and the edges between them.
//
// The work of a node is its content, which nothing here looks into: the client and the
// software GPU each have their own. `Use` says what they are:
//
//   struct Use {
//     using Content = ...;                           the work of a node; may be copied
//     // The child graph in it; null when it is none.
//     static std::shared_ptr<Graph<Use>>* ChildIn(Content* content);
//     // As conditional.h says.
//     static std::shared_ptr<Conditional<Use>> ConditionalIn(const Content& content);
//     static bool MayBeInBody(const Content& content);
//     // The program may name it from now on, by the result; and no longer.
//     static uint64_t Enter(const std::shared_ptr<Graph<Use>>& graph);
//     static uint64_t Enter(const std::shared_ptr<Node<Use>>& node);
//     static void Leave(const Graph<Use>& graph);
//     static void Leave(const Node<Use>& node);
//   };
//
// A graph owns its nodes, which keep the order in which they were added: it is also the order among
// independent nodes. A child graph is its node's own copy. Thread safety: CUDA leaves concurrent
// changes of one graph to the program; Use's names must be safe from any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "graphs/condition.h"
#include "graphs/refusal.h"
#include "graphs/user_object.h"

namespace graphs {

template <class Use>
class Graph;
template <class Use>
struct Conditional;  // conditional.h

template <class Use>
class Node : public std::enable_shared_from_this<Node<Use>> {
 public:
  Node(std::weak_ptr<Graph<Use>> owner, typename Use::Content its_content)
      : graph(std::move(owner)), content(std::move(its_content)) {}

  const std::weak_ptr<Graph<Use>> graph;
  typename Use::Content content;

  uint64_t name() const { return name_; }
  // Of a clone: the name of the node that it was made from, which may be gone.
  uint64_t original() const { return original_; }
  const std::vector<Node*>& dependencies() const { return dependencies_; }
  size_t position() const { return position_; }  // in its graph

 private:
  friend class Graph<Use>;

  uint64_t name_ = 0;
  uint64_t original_ = 0;
  std::vector<Node*> dependencies_;
  size_t position_ = 0;
};

template <class Use>
class Graph : public std::enable_shared_from_this<Graph<Use>> {
 public:
  using Content = typename Use::Content;
  using Member = Node<Use>;
  using Members = std::vector<Member*>;

  static std::shared_ptr<Graph> Create() {
    const std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    graph->name_ = Use::Enter(graph);
    return graph;
  }

  // A body of a conditional node that is a node of `around`.
  static std::shared_ptr<Graph> CreateBody(const std::shared_ptr<Graph>& around) {
    const std::shared_ptr<Graph> graph = Create();
    graph->around_ = around;
    graph->is_body_ = true;
    return graph;
  }

  uint64_t name() const { return name_; }
  bool is_body() const { return is_body_; }
  const std::vector<std::shared_ptr<Member>>& nodes() const { return nodes_; }
  UserReferences user_objects;
  // For conditional nodes of this graph and of what is inside their bodies.
  std::vector<std::shared_ptr<Condition>> conditions;
  std::weak_ptr<void> instance;  // what was instantiated from it last

  // --- changes

  // Adds a node behind `dependencies`.
  Refusal Add(Content content, Members dependencies, Member** node) {
    if (const Refusal refusal = Check(dependencies); refusal != Refusal::kNone) return refusal;
    OwnChild(&content);
    nodes_.push_back(std::make_shared<Member>(this->weak_from_this(), std::move(content)));
    *node = nodes_.back().get();
    (*node)->dependencies_ = std::move(dependencies);
    (*node)->position_ = nodes_.size() - 1;
    (*node)->name_ = Use::Enter(nodes_.back());
    return Refusal::kNone;
  }

  // Also its edges. REQUIRES: a node of this graph. Does nothing for one that was removed.
  void Remove(Member* node) {
    if (!Owns(node)) return;
    const std::shared_ptr<Member> keep = nodes_[node->position_];
    Use::Leave(*node);
    DestroyChild(&node->content);
    for (const std::shared_ptr<Member>& own : nodes_) std::erase(own->dependencies_, node);
    nodes_.erase(nodes_.begin() + static_cast<ptrdiff_t>(node->position_));
    for (size_t i = node->position_; i < nodes_.size(); ++i) nodes_[i]->position_ = i;
  }

  // The node does something else from now on.
  static void Change(Member* node, Content content) {
    OwnChild(&content);
    DestroyChild(&node->content);
    node->content = std::move(content);
  }

  // A cycle is found when the graph is instantiated, as the driver does.
  Refusal AddEdge(Member* from, Member* to) {
    if (!Owns(from) || !Owns(to)) return Refusal::kForeignNode;
    if (from == to) return Refusal::kSelfEdge;
    if (Has(to->dependencies_, from)) return Refusal::kEdgeExists;
    to->dependencies_.push_back(from);
    return Refusal::kNone;
  }

  Refusal RemoveEdge(Member* from, Member* to) {
    if (!Owns(to)) return Refusal::kForeignNode;
    return std::erase(to->dependencies_, from) != 0 ? Refusal::kNone : Refusal::kNoEdge;
  }

  // A copy whose nodes know their originals. The program may name all of it. REQUIRES: no
  // conditional nodes.
  std::shared_ptr<Graph> Clone() const {
    const std::shared_ptr<Graph> copy = Create();
    for (const std::shared_ptr<Member>& node : nodes_) {
      Member* own = nullptr;
      (void)copy->Add(node->content, {}, &own);
      own->original_ = node->name_;
    }
    for (const std::shared_ptr<Member>& node : nodes_) {
      for (const Member* const dependency : node->dependencies_) {
        copy->nodes_[node->position_]->dependencies_.push_back(
            copy->nodes_[dependency->position_].get());
      }
    }
    copy->user_objects = user_objects;
    return copy;
  }

  // The program may no longer name it, its nodes and their child graphs; what still uses them keeps
  // them.
  void Destroy() {
    const std::shared_ptr<Graph> keep = this->shared_from_this();
    Use::Leave(*this);
    for (const std::shared_ptr<Member>& node : nodes_) {
      Use::Leave(*node);
      DestroyChild(&node->content);
    }
  }

  // --- queries

  bool Owns(const Member* node) const {
    return node->position_ < nodes_.size() && nodes_[node->position_].get() == node;
  }

  // Whether a node may be added behind them: nodes of this graph, each once.
  Refusal Check(const Members& dependencies) const {
    std::set<const Member*> seen;
    for (const Member* const dependency : dependencies) {
      if (!Owns(dependency)) return Refusal::kForeignNode;
      if (!seen.insert(dependency).second) return Refusal::kRepeatedDependency;
    }
    return Refusal::kNone;
  }

  // The condition is of this graph, or of one around it.
  bool KnowsCondition(const std::shared_ptr<Condition>& condition) const {
    if (std::find(conditions.begin(), conditions.end(), condition) != conditions.end()) return true;
    const std::shared_ptr<Graph> around = around_.lock();
    return around != nullptr && around->KnowsCondition(condition);
  }

  Members Roots() const {
    Members roots;
    for (const std::shared_ptr<Member>& node : nodes_) {
      if (node->dependencies_.empty()) roots.push_back(node.get());
    }
    return roots;
  }

  // By the later node's position, and then as they were added.
  std::vector<std::pair<Member*, Member*>> Edges() const {
    std::vector<std::pair<Member*, Member*>> edges;
    for (const std::shared_ptr<Member>& node : nodes_) {
      for (Member* const dependency : node->dependencies_)
        edges.emplace_back(dependency, node.get());
    }
    return edges;
  }

  Members DependentsOf(const Member* node) const {
    Members dependents;
    for (const std::shared_ptr<Member>& other : nodes_) {
      if (Has(other->dependencies_, node)) dependents.push_back(other.get());
    }
    return dependents;
  }

  // Null when no node of this graph was made from that one.
  Member* CopyOf(uint64_t original) const {
    for (const std::shared_ptr<Member>& node : nodes_) {
      if (original != 0 && node->original_ == original) return node.get();
    }
    return nullptr;
  }

  // By position: the nodes that come before one of `last`, and these themselves.
  std::vector<bool> UpTo(Members last) const {
    std::vector<bool> before(nodes_.size());
    while (!last.empty()) {
      const Member* const node = last.back();
      last.pop_back();
      if (before[node->position_]) continue;
      before[node->position_] = true;
      last.insert(last.end(), node->dependencies_.begin(), node->dependencies_.end());
    }
    return before;
  }

  // Every node after its dependencies: in rounds, each of which takes what is ready in the order of
  // addition. One round where edges lead forward. False when there is a cycle.
  bool Order(Members* order) const {
    std::vector<Members> dependents(nodes_.size());
    std::vector<size_t> missing(nodes_.size()), round(nodes_.size());
    using Ready = std::pair<size_t, size_t>;  // round, position
    std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
    for (const std::shared_ptr<Member>& node : nodes_) {
      for (const Member* const dependency : node->dependencies_)
        dependents[dependency->position_].push_back(node.get());
      missing[node->position_] = node->dependencies_.size();
      if (missing[node->position_] == 0) ready.push({0, node->position_});
    }
    order->clear();
    while (!ready.empty()) {
      const auto [own_round, position] = ready.top();
      ready.pop();
      order->push_back(nodes_[position].get());
      for (const Member* const next : dependents[position]) {
        const size_t at = next->position_;
        round[at] = std::max(round[at], own_round + (at < position ? 1 : 0));
        if (--missing[at] == 0) ready.push({round[at], at});
      }
    }
    return order->size() == nodes_.size();
  }

 private:
  static bool Has(const Members& nodes, const Member* node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  }
  static void OwnChild(Content* content) {
    if (std::shared_ptr<Graph>* const child = Use::ChildIn(content); child != nullptr)
      *child = (*child)->Clone();
  }
  static void DestroyChild(Content* content) {
    if (std::shared_ptr<Graph>* const child = Use::ChildIn(content); child != nullptr)
      (*child)->Destroy();
    const std::shared_ptr<Conditional<Use>> conditional = Use::ConditionalIn(*content);
    if (conditional == nullptr) return;
    for (const std::shared_ptr<Graph>& body : conditional->bodies) body->Destroy();
  }

  uint64_t name_ = 0;
  bool is_body_ = false;
  std::weak_ptr<Graph> around_;  // of a body
  std::vector<std::shared_ptr<Member>> nodes_;
};

}  // namespace graphs
