#include "serve/metrics/registry.h"

#include <gtest/gtest.h>

namespace serve::metrics {
namespace {

TEST(RegistryTest, WritesThePage) {
  Registry registry;
  registry.AddCounter("b", "help\nme", {{"model", "a\"\\\n"}})->Add(2);
  registry.AddGauge("a", "of now")->Set(0.1);
  Histogram* const histogram = registry.AddHistogram("c", "times", {1, 2}, {{"m", "x"}});
  for (const double value : {0.5, 1.0, 1.5, 7.0}) histogram->Observe(value);
  EXPECT_EQ(registry.Text(),
            "# HELP a of now\n# TYPE a gauge\na 0.1\n"
            "# HELP b help\\nme\n# TYPE b counter\nb{model=\"a\\\"\\\\\\n\"} 2\n"
            "# HELP c times\n# TYPE c histogram\n"
            "c_bucket{m=\"x\",le=\"1\"} 2\nc_bucket{m=\"x\",le=\"2\"} 3\n"
            "c_bucket{m=\"x\",le=\"+Inf\"} 4\nc_sum{m=\"x\"} 10\nc_count{m=\"x\"} 4\n");
}

TEST(RegistryTest, TheSameLabelsAreOneSeries) {
  Registry registry;
  Counter* const first = registry.AddCounter("n", "h", {{"a", "1"}});
  first->Add();
  EXPECT_EQ(registry.AddCounter("n", "h", {{"a", "1"}}), first);
  EXPECT_NE(registry.AddCounter("n", "h", {{"a", "2"}}), first);
  EXPECT_EQ(first->value(), 1);
}

}  // namespace
}  // namespace serve::metrics
