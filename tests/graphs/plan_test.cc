// The order of instantiation, and when an update has the same shape.
#include "graphs/plan.h"

#include "tests/graphs/fixture.h"

namespace graphs_test {
namespace {

using graphs::Difference;
using graphs::StepShape;

TEST(Plan, NumbersDependenciesByTheOrder) {
  const std::shared_ptr<Graph> graph = Graph::Create();
  Node* const last = Add(*graph, "l");
  Node* const first = Add(*graph, "f");
  Node* const middle = Add(*graph, "m", {first});
  ASSERT_EQ(graph->AddEdge(middle, last), Refusal::kNone);
  ASSERT_EQ(graph->AddEdge(first, last), Refusal::kNone);
  const auto plan = graphs::PlanOf(*graph);
  ASSERT_TRUE(plan.has_value());
  std::string labels;
  for (const auto& planned : *plan) labels += planned.node->content.label;
  EXPECT_EQ(labels, "fml");
  EXPECT_EQ((*plan)[0].dependencies, std::vector<size_t>{});
  EXPECT_EQ((*plan)[1].dependencies, std::vector<size_t>{0});
  EXPECT_EQ((*plan)[2].dependencies, (std::vector<size_t>{0, 1}));
  ASSERT_EQ(graph->AddEdge(last, first), Refusal::kNone);
  EXPECT_FALSE(graphs::PlanOf(*graph).has_value());
  graph->Destroy();
}

TEST(Plan, UpdatesKeepTheShape) {
  const std::vector<StepShape> before = {{{}, 0}, {{0}, 1}, {{0, 1}, 0}};
  size_t at = 77;
  EXPECT_EQ(graphs::Compare(before, before, &at), Difference::kNone);
  EXPECT_EQ(at, 3u);
  std::vector<StepShape> after = before;
  after[1].type = 2;
  EXPECT_EQ(graphs::Compare(before, after, &at), Difference::kType);
  EXPECT_EQ(at, 1u);
  for (const auto member : {&StepShape::kind, &StepShape::bodies}) {
    std::vector<StepShape> other = before;
    other[2].*member = 1;
    EXPECT_EQ(graphs::Compare(before, other, &at), Difference::kType);
    EXPECT_EQ(at, 2u);
  }
  at = 1;
  after[1].dependencies.clear();  // told before the type
  EXPECT_EQ(graphs::Compare(before, after, &at), Difference::kTopology);
  EXPECT_EQ(at, 1u);
  after = before;
  after[2].dependencies = {1};
  EXPECT_EQ(graphs::Compare(before, after, &at), Difference::kTopology);
  EXPECT_EQ(at, 2u);
  after.pop_back();
  EXPECT_EQ(graphs::Compare(before, after, &at), Difference::kTopology);
  EXPECT_EQ(at, 3u);
}

}  // namespace
}  // namespace graphs_test
