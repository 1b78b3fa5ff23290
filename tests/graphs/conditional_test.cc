// Which body a condition asks for, and the rules of graphs with conditional nodes.
#include "graphs/conditional.h"

#include "tests/graphs/fixture.h"

namespace graphs_test {
namespace {

using graphs::BodyFor;
using graphs::Branch;
using graphs::Condition;
using graphs::Conditions;

constexpr std::optional<size_t> kNone;

TEST(Condition, SaysWhichBodyRuns) {
  EXPECT_EQ(BodyFor(Branch::kIf, 1, 0), kNone);
  EXPECT_EQ(BodyFor(Branch::kIf, 1, 7), 0u);
  EXPECT_EQ(BodyFor(Branch::kIf, 2, 0), 1u) << "the else";
  EXPECT_EQ(BodyFor(Branch::kIf, 2, 1), 0u);
  EXPECT_EQ(BodyFor(Branch::kWhile, 1, 0), kNone);
  EXPECT_EQ(BodyFor(Branch::kWhile, 1, ~0u), 0u);
  EXPECT_EQ(BodyFor(Branch::kSwitch, 3, 0), 0u);
  EXPECT_EQ(BodyFor(Branch::kSwitch, 3, 2), 2u);
  EXPECT_EQ(BodyFor(Branch::kSwitch, 3, 3), kNone);
  for (size_t bodies = 0; bodies < 5; ++bodies) {
    EXPECT_EQ(graphs::MayHaveBodies(Branch::kIf, bodies), bodies == 1 || bodies == 2);
    EXPECT_EQ(graphs::MayHaveBodies(Branch::kWhile, bodies), bodies == 1);
    EXPECT_EQ(graphs::MayHaveBodies(Branch::kSwitch, bodies), bodies != 0);
  }
}

TEST(Condition, HasItsDefaultValueAtEachLaunchWhereThatWasAsked) {
  Conditions all(0x11);
  const std::shared_ptr<Condition> assigned = all.Create({0, 5, true});
  const std::shared_ptr<Condition> kept = all.Create({0, 5, false});
  for (Condition* const one : {assigned.get(), kept.get()}) {
    one->Set(2);
    one->BeginLaunch();
  }
  EXPECT_EQ(assigned->value(), 5u);
  EXPECT_EQ(kept->value(), 2u);
}

TEST(Condition, IsFoundByItsNameWhileItLives) {
  Conditions all(0x11);
  std::shared_ptr<Condition> first = all.Create({});
  const uint64_t name = first->name();
  EXPECT_EQ(name >> 56, 0x11u);
  EXPECT_EQ(all.Find(name), first);
  first.reset();
  EXPECT_EQ(all.Find(name), nullptr);
  EXPECT_NE(all.Create({})->name(), name);
}

class ConditionalTest : public ::testing::Test {
 protected:
  // A node on a condition of the graph's own.
  std::shared_ptr<graphs::Conditional<Use>> Conditional(const std::shared_ptr<Graph>& graph,
                                                        Node** node = nullptr) {
    graph->conditions.push_back(all_.Create({}));
    std::shared_ptr<graphs::Conditional<Use>> made;
    EXPECT_EQ(graphs::MakeConditional(graph, graph->conditions.back(), Branch::kIf, 2, &made),
              Refusal::kNone);
    Node* added = nullptr;
    EXPECT_EQ(graph->Add({"c", nullptr, made}, {}, &added), Refusal::kNone);
    if (node != nullptr) *node = added;
    return made;
  }

  Conditions all_{1};
  std::shared_ptr<Graph> graph_ = Graph::Create();
};

TEST_F(ConditionalTest, AConditionIsForOneNodeOfItsGraphOrOfABodyInside) {
  const std::shared_ptr<graphs::Conditional<Use>> outer = Conditional(graph_);
  std::shared_ptr<graphs::Conditional<Use>> made, second;
  EXPECT_EQ(graphs::MakeConditional(graph_, outer->condition, Branch::kIf, 1, &made),
            Refusal::kTakenCondition);
  const std::shared_ptr<Condition> inner = all_.Create({});
  EXPECT_EQ(graphs::MakeConditional(outer->bodies[0], inner, Branch::kIf, 1, &made),
            Refusal::kForeignCondition);
  EXPECT_EQ(graphs::MakeConditional<Use>(graph_, nullptr, Branch::kIf, 1, &made),
            Refusal::kForeignCondition);
  graph_->conditions.push_back(inner);
  EXPECT_EQ(graphs::MakeConditional(outer->bodies[0], inner, Branch::kWhile, 2, &made),
            Refusal::kBodyCount);
  EXPECT_EQ(graphs::MakeConditional(outer->bodies[0], inner, Branch::kWhile, 1, &made),
            Refusal::kNone);
  made.reset();  // no node was made of it
  EXPECT_EQ(graphs::MakeConditional(outer->bodies[1], inner, Branch::kWhile, 1, &second),
            Refusal::kNone);
}

TEST_F(ConditionalTest, BodiesEndWithTheirNode) {
  Node* node = nullptr;
  const std::shared_ptr<graphs::Conditional<Use>> made = Conditional(graph_, &node);
  const Node* const inside = Add(*made->bodies[1], "a");
  EXPECT_EQ(Use::known.count(inside->name()), 1u);
  graph_->Remove(node);
  EXPECT_EQ(Use::known.count(inside->name()), 0u);
  EXPECT_EQ(Use::known.count(made->bodies[0]->name()), 0u);
}

TEST_F(ConditionalTest, AGraphIsInstantiatedOnceAtATimeAndABodyNever) {
  EXPECT_EQ(graphs::CheckInstance(*graph_), Refusal::kNone);
  std::shared_ptr<void> instance = std::make_shared<int>();
  graph_->instance = instance;
  EXPECT_EQ(graphs::CheckInstance(*graph_), Refusal::kNone) << "it has no conditional node";
  const std::shared_ptr<graphs::Conditional<Use>> made = Conditional(graph_);
  EXPECT_EQ(graphs::CheckInstance(*graph_), Refusal::kInstantiated);
  instance.reset();
  EXPECT_EQ(graphs::CheckInstance(*graph_), Refusal::kNone);
  EXPECT_EQ(graphs::CheckInstance(*made->bodies[0]), Refusal::kBody);
}

TEST_F(ConditionalTest, UnusedConditionsAndForbiddenNodesAreFoundAtAnyDepth) {
  const std::shared_ptr<graphs::Conditional<Use>> outer = Conditional(graph_);
  const std::shared_ptr<graphs::Conditional<Use>> inner = Conditional(outer->bodies[1]);
  Add(*graph_, "Host");
  EXPECT_EQ(graphs::CheckConditionals(*graph_), Refusal::kNone) << "it lies in no body";
  inner->bodies[0]->conditions.push_back(all_.Create({}));
  EXPECT_EQ(graphs::CheckConditionals(*graph_), Refusal::kUnusedCondition);
  inner->bodies[0]->conditions.clear();
  const std::shared_ptr<Graph> child = Graph::Create();
  Add(*child, "Host");
  Add(*inner->bodies[0], "child", {}, child);
  EXPECT_EQ(graphs::CheckConditionals(*graph_), Refusal::kNotInBody);
}

TEST_F(ConditionalTest, ChildGraphsHaveNone) {
  Node* const node = Add(*graph_, "child", {}, Graph::Create());
  EXPECT_FALSE(graphs::HasConditional(*graph_));
  Conditional(node->content.child);  // by its handle
  EXPECT_TRUE(graphs::HasConditional(*graph_));
  EXPECT_EQ(graphs::CheckConditionals(*graph_), Refusal::kConditionalCopied);
}

TEST_F(ConditionalTest, BodiesLieSoDeepAndNoDeeper) {
  std::shared_ptr<Graph> graph = graph_;
  for (size_t depth = 0; depth < ipc::limits::kGraphDepthMax; ++depth)
    graph = Conditional(graph)->bodies[0];
  EXPECT_EQ(graphs::CheckConditionals(*graph_), Refusal::kNone);
  Conditional(graph);
  EXPECT_EQ(graphs::CheckConditionals(*graph_), Refusal::kTooDeep);
}

}  // namespace
}  // namespace graphs_test
