// Graphs whose nodes do nothing but have a label, and a book of the names that a program would
// hold. Thread safety: as of graphs; the book is not safe.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graphs/conditional.h"
#include "graphs/graph.h"

namespace graphs_test {

struct Use;
using Graph = graphs::Graph<Use>;
using Node = graphs::Node<Use>;
using graphs::Refusal;

struct Use {
  struct Content {
    std::string label;
    std::shared_ptr<Graph> child;
    std::shared_ptr<graphs::Conditional<Use>> conditional = nullptr;
  };
  static std::shared_ptr<Graph>* ChildIn(Content* content) {
    return content->child != nullptr ? &content->child : nullptr;
  }
  static std::shared_ptr<graphs::Conditional<Use>> ConditionalIn(const Content& content) {
    return content.conditional;
  }
  // A label in capitals stands for a type of nodes that bodies must not have.
  static bool MayBeInBody(const Content& content) { return content.label[0] >= 'a'; }
  static uint64_t Enter(const std::shared_ptr<Graph>&) { return EnterNext(); }
  static uint64_t Enter(const std::shared_ptr<Node>&) { return EnterNext(); }
  static void Leave(const Graph& graph) { known.erase(graph.name()); }
  static void Leave(const Node& node) { known.erase(node.name()); }

  static inline std::set<uint64_t> known;

 private:
  static uint64_t EnterNext() {
    static uint64_t last = 0;
    known.insert(++last);
    return last;
  }
};

inline Node* Add(Graph& graph, const std::string& label, const std::vector<Node*>& after = {},
                 const std::shared_ptr<Graph>& child = nullptr) {
  Node* node = nullptr;
  EXPECT_EQ(graph.Add({label, child}, after, &node), Refusal::kNone);
  return node;
}

inline std::string Labels(const std::vector<Node*>& nodes) {
  std::string labels;
  for (const Node* const node : nodes) labels += node->content.label;
  return labels;
}

}  // namespace graphs_test
