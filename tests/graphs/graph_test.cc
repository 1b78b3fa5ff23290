// Graphs against what a matrix of edges says, and the rules for changing them.
#include "graphs/graph.h"

#include "tests/graphs/fixture.h"

namespace graphs_test {
namespace {

constexpr size_t kNodes = 4;

// Every set of edges among four nodes, as a bit for each ordered pair of different ones.
class AllGraphs {
 public:
  template <class Check>
  static void ForEach(const Check& check) {
    for (unsigned bits = 0; bits < 1u << (kNodes * (kNodes - 1)); ++bits) {
      AllGraphs one(bits);
      check(one);
      one.graph->Destroy();
      if (::testing::Test::HasFailure()) {
        FAIL() << "edges " << bits;
      }
    }
  }

  std::shared_ptr<Graph> graph = Graph::Create();
  bool edge[kNodes][kNodes] = {};  // from, to

 private:
  explicit AllGraphs(unsigned bits) {
    for (size_t i = 0; i < kNodes; ++i) Add(*graph, std::string(1, static_cast<char>('a' + i)));
    for (size_t from = 0; from < kNodes; ++from) {
      for (size_t to = 0; to < kNodes; ++to) {
        if (from == to) continue;
        edge[from][to] = (bits & 1) != 0;
        bits >>= 1;
        if (!edge[from][to]) continue;
        EXPECT_EQ(graph->AddEdge(graph->nodes()[from].get(), graph->nodes()[to].get()),
                  Refusal::kNone);
      }
    }
  }
};

TEST(Graph, QueriesSayWhatTheEdgesAre) {
  AllGraphs::ForEach([](AllGraphs& one) {
    size_t edges = 0;
    std::string roots;
    for (size_t node = 0; node < kNodes; ++node) {
      std::string dependencies, dependents;
      for (size_t other = 0; other < kNodes; ++other) {
        const std::string label = one.graph->nodes()[other]->content.label;
        if (one.edge[other][node]) dependencies += label;
        if (one.edge[node][other]) dependents += label;
      }
      const Node* const own = one.graph->nodes()[node].get();
      EXPECT_EQ(Labels(own->dependencies()), dependencies);
      EXPECT_EQ(Labels(one.graph->DependentsOf(own)), dependents);
      if (dependencies.empty()) roots += own->content.label;
      edges += dependencies.size();
    }
    EXPECT_EQ(Labels(one.graph->Roots()), roots);
    EXPECT_EQ(one.graph->Edges().size(), edges);
    for (const auto& [from, to] : one.graph->Edges())
      EXPECT_TRUE(one.edge[from->position()][to->position()]);
  });
}

// What is ready is taken in the order of addition, again and again.
bool OrderBySweeps(const AllGraphs& one, std::vector<size_t>* order) {
  bool done[kNodes] = {};
  for (size_t sweep = 0; sweep < kNodes; ++sweep) {
    for (size_t node = 0; node < kNodes; ++node) {
      bool is_ready = !done[node];
      for (size_t other = 0; other < kNodes; ++other)
        is_ready = is_ready && (!one.edge[other][node] || done[other]);
      if (!is_ready) continue;
      done[node] = true;
      order->push_back(node);
    }
  }
  return order->size() == kNodes;
}

TEST(Graph, OrderIsThatOfSweepsAndFindsCycles) {
  size_t cyclic = 0;
  AllGraphs::ForEach([&](AllGraphs& one) {
    std::vector<size_t> wanted;
    std::vector<Node*> order;
    const bool has_order = OrderBySweeps(one, &wanted);
    EXPECT_EQ(one.graph->Order(&order), has_order);
    if (!has_order) {
      ++cyclic;
      return;
    }
    std::vector<size_t> positions;
    for (const Node* const node : order) positions.push_back(node->position());
    EXPECT_EQ(positions, wanted);
  });
  EXPECT_EQ(cyclic, 4096u - 543u);  // 543: the labelled acyclic graphs of four nodes
}

TEST(Graph, UpToIsWhatReaches) {
  AllGraphs::ForEach([](AllGraphs& one) {
    bool reaches[kNodes][kNodes] = {};
    for (size_t i = 0; i < kNodes; ++i) {
      for (size_t j = 0; j < kNodes; ++j) reaches[i][j] = i == j || one.edge[i][j];
    }
    for (size_t by = 0; by < kNodes; ++by) {
      for (size_t i = 0; i < kNodes; ++i) {
        for (size_t j = 0; j < kNodes; ++j)
          reaches[i][j] = reaches[i][j] || (reaches[i][by] && reaches[by][j]);
      }
    }
    for (size_t last = 0; last < kNodes; ++last) {
      const std::vector<bool> before = one.graph->UpTo({one.graph->nodes()[last].get()});
      for (size_t node = 0; node < kNodes; ++node) EXPECT_EQ(before[node], reaches[node][last]);
    }
  });
}

TEST(Graph, ACloneHasTheSameShapeAndKnowsItsOriginals) {
  AllGraphs::ForEach([](AllGraphs& one) {
    const std::shared_ptr<Graph> copy = one.graph->Clone();
    for (const std::shared_ptr<Node>& node : one.graph->nodes()) {
      const Node* const own = copy->CopyOf(node->name());
      ASSERT_NE(own, nullptr);
      EXPECT_EQ(own->original(), node->name());
      EXPECT_EQ(own->content.label, node->content.label);
      EXPECT_EQ(Labels(own->dependencies()), Labels(node->dependencies()));
      for (const Node* const dependency : own->dependencies()) EXPECT_TRUE(copy->Owns(dependency));
    }
    copy->Destroy();
  });
}

TEST(Graph, RemovingANodeLeavesTheOthersAndTheirEdges) {
  AllGraphs::ForEach([](AllGraphs& one) {
    const std::shared_ptr<Node> gone = one.graph->nodes()[1];
    one.graph->Remove(gone.get());
    EXPECT_FALSE(one.graph->Owns(gone.get()));
    EXPECT_EQ(Use::known.count(gone->name()), 0u);
    ASSERT_EQ(one.graph->nodes().size(), kNodes - 1);
    constexpr size_t kBefore[] = {0, 2, 3};
    for (size_t i = 0; i < kNodes - 1; ++i) {
      EXPECT_TRUE(one.graph->Owns(one.graph->nodes()[i].get()));
      std::string dependencies;
      for (size_t j = 0; j < kNodes - 1; ++j) {
        if (one.edge[kBefore[j]][kBefore[i]]) dependencies += one.graph->nodes()[j]->content.label;
      }
      EXPECT_EQ(Labels(one.graph->nodes()[i]->dependencies()), dependencies);
    }
  });
}

TEST(Graph, ChangesThatMakeNoSenseAreRefused) {
  const std::shared_ptr<Graph> graph = Graph::Create(), other = Graph::Create();
  Node* const first = Add(*graph, "a");
  Node* const second = Add(*graph, "b", {first});
  Node* const foreign = Add(*other, "x");
  Node* node = nullptr;
  EXPECT_EQ(graph->Add({}, {foreign}, &node), Refusal::kForeignNode);
  EXPECT_EQ(graph->Add({}, {first, second, first}, &node), Refusal::kRepeatedDependency);
  EXPECT_EQ(node, nullptr);
  EXPECT_EQ(graph->AddEdge(first, foreign), Refusal::kForeignNode);
  EXPECT_EQ(graph->AddEdge(foreign, first), Refusal::kForeignNode);
  EXPECT_EQ(graph->AddEdge(first, first), Refusal::kSelfEdge);
  EXPECT_EQ(graph->AddEdge(first, second), Refusal::kEdgeExists);
  EXPECT_EQ(graph->RemoveEdge(second, first), Refusal::kNoEdge);
  EXPECT_EQ(graph->RemoveEdge(first, foreign), Refusal::kForeignNode);
  EXPECT_EQ(graph->RemoveEdge(first, second), Refusal::kNone);
  EXPECT_EQ(graph->RemoveEdge(first, second), Refusal::kNoEdge);
  EXPECT_EQ(graph->nodes().size(), 2u);
  graph->Destroy();
  other->Destroy();
}

TEST(Graph, ARemovedNodeIsForeign) {
  const std::shared_ptr<Graph> graph = Graph::Create();
  const std::shared_ptr<Node> removed = Add(*graph, "a")->shared_from_this();
  Add(*graph, "b");
  graph->Remove(removed.get());
  graph->Remove(removed.get());  // once more does nothing
  EXPECT_EQ(graph->nodes().size(), 1u);
  Node* node = nullptr;
  EXPECT_EQ(graph->Add({}, {removed.get()}, &node), Refusal::kForeignNode);
  graph->Destroy();
}

// A child graph is its node's own copy, named while the node is there.
TEST(Graph, AChildGraphBelongsToItsNode) {
  const size_t names = Use::known.size();
  const std::shared_ptr<Graph> inner = Graph::Create(), graph = Graph::Create();
  Add(*inner, "i");
  Node* const node = Add(*graph, "n", {}, inner);
  const std::shared_ptr<Graph> own = node->content.child;
  EXPECT_NE(own, inner);
  Add(*inner, "later");
  EXPECT_EQ(own->nodes().size(), 1u);
  EXPECT_EQ(own->nodes()[0]->original(), inner->nodes()[0]->name());

  const std::shared_ptr<Graph> clone = graph->Clone();
  const std::shared_ptr<Graph> of_clone = clone->nodes()[0]->content.child;
  EXPECT_NE(of_clone, own);
  EXPECT_EQ(Use::known.count(of_clone->name()), 1u);
  EXPECT_EQ(Use::known.count(of_clone->nodes()[0]->name()), 1u);

  Graph::Change(node, {"n", inner});
  EXPECT_EQ(Use::known.count(own->name()), 0u);
  EXPECT_EQ(node->content.child->nodes().size(), 2u);
  EXPECT_NE(node->content.child, inner);

  graph->Remove(node);
  clone->Destroy();
  EXPECT_EQ(Use::known.count(of_clone->name()), 0u);
  EXPECT_EQ(Use::known.count(of_clone->nodes()[0]->name()), 0u);
  EXPECT_EQ(Use::known.count(inner->name()), 1u);
  graph->Destroy();
  inner->Destroy();
  EXPECT_EQ(Use::known.size(), names);
}

TEST(Graph, ALongChainInTheWrongOrderIsOrderedAtOnce) {
  constexpr size_t kLength = 20'000;  // sweeps would take so many
  const std::shared_ptr<Graph> graph = Graph::Create();
  for (size_t i = 0; i < kLength; ++i) Add(*graph, "");
  for (size_t i = 1; i < kLength; ++i)
    ASSERT_EQ(graph->AddEdge(graph->nodes()[i].get(), graph->nodes()[i - 1].get()), Refusal::kNone);
  std::vector<Node*> order;
  ASSERT_TRUE(graph->Order(&order));
  EXPECT_EQ(order.front(), graph->nodes().back().get());
  EXPECT_EQ(order.back(), graph->nodes().front().get());
  graph->Destroy();
}

}  // namespace
}  // namespace graphs_test
