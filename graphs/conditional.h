// The content of a conditional node, and the rules of graphs that have such nodes.
//
// The bodies are graphs of the node's own: the program fills them by the same calls, and they end
// with the node. A Use (graph.h) tells of a content, besides:
//
//   // The conditional node in it; null when it is none.
//   static std::shared_ptr<Conditional<Use>> ConditionalIn(const Content& content);
//   // True for the types of nodes that CUDA allows in bodies.
//   static bool MayBeInBody(const Content& content);
//
// Thread safety: as of graphs.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "graphs/condition.h"
#include "graphs/graph.h"
#include "graphs/refusal.h"
#include "ipc/calls/limits.h"

namespace graphs {

template <class Use>
struct Conditional {
  std::shared_ptr<Condition> condition;
  Branch kind = Branch::kIf;
  std::vector<std::shared_ptr<Graph<Use>>> bodies;
};

// The content of a node that is to be added to `graph`: takes the condition and makes the bodies.
template <class Use>
Refusal MakeConditional(const std::shared_ptr<Graph<Use>>& graph,
                        const std::shared_ptr<Condition>& condition, Branch kind, size_t bodies,
                        std::shared_ptr<Conditional<Use>>* made) {
  if (!MayHaveBodies(kind, bodies) || bodies > ipc::limits::kGraphBodiesMax)
    return Refusal::kBodyCount;
  if (condition == nullptr || !graph->KnowsCondition(condition)) return Refusal::kForeignCondition;
  const std::shared_ptr<Conditional<Use>> conditional = std::make_shared<Conditional<Use>>();
  if (!condition->Take(conditional)) return Refusal::kTakenCondition;
  conditional->condition = condition;
  conditional->kind = kind;
  for (size_t i = 0; i < bodies; ++i) conditional->bodies.push_back(Graph<Use>::CreateBody(graph));
  *made = conditional;
  return Refusal::kNone;
}

// The graph, or a child graph in it, has a conditional node.
template <class Use>
bool HasConditional(const Graph<Use>& graph) {
  for (const std::shared_ptr<Node<Use>>& node : graph.nodes()) {
    if (Use::ConditionalIn(node->content) != nullptr) return true;
    const std::shared_ptr<Graph<Use>>* const child = Use::ChildIn(&node->content);
    if (child != nullptr && HasConditional(**child)) return true;
  }
  return false;
}

// Nodes that a graph and everything inside must not have. `depth`: bodies around it.
template <class Use>
Refusal CheckConditionals(const Graph<Use>& graph, size_t depth = 0, bool is_child = false) {
  if (depth > ipc::limits::kGraphDepthMax) return Refusal::kTooDeep;
  for (const std::shared_ptr<Condition>& condition : graph.conditions) {
    if (!condition->IsTaken()) return Refusal::kUnusedCondition;
  }
  for (const std::shared_ptr<Node<Use>>& node : graph.nodes()) {
    if (depth != 0 && !Use::MayBeInBody(node->content)) return Refusal::kNotInBody;
    Refusal refusal = Refusal::kNone;
    if (const std::shared_ptr<Graph<Use>>* const child = Use::ChildIn(&node->content))
      refusal = CheckConditionals(**child, depth, true);
    const std::shared_ptr<Conditional<Use>> conditional = Use::ConditionalIn(node->content);
    if (conditional != nullptr && is_child) return Refusal::kConditionalCopied;
    for (size_t i = 0; conditional != nullptr && i < conditional->bodies.size(); ++i) {
      if (refusal == Refusal::kNone)
        refusal = CheckConditionals(*conditional->bodies[i], depth + 1, false);
    }
    if (refusal != Refusal::kNone) return refusal;
  }
  return Refusal::kNone;
}

// The rule of conditional nodes that forbids to instantiate the graph now, if there is one.
template <class Use>
Refusal CheckInstance(const Graph<Use>& graph) {
  if (graph.is_body()) return Refusal::kBody;
  const Refusal refusal = CheckConditionals(graph);
  if (refusal != Refusal::kNone) return refusal;
  return !graph.instance.expired() && HasConditional(graph) ? Refusal::kInstantiated
                                                            : Refusal::kNone;
}

}  // namespace graphs
