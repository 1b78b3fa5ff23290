// What kernels print arrives whole and in order, or not at all.
#include "ipc/print_area.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "tests/harness/seed.h"

namespace worker {
namespace {

TEST(PrintArea, KeepsOrderOverManyTurns) {
  std::mt19937_64 random(harness::Seed());
  const std::unique_ptr<ipc::PrintArea> area = std::make_unique<ipc::PrintArea>();
  std::string expected;
  for (int round = 0; round < 2'000; ++round) {
    const std::string text(random() % 2'000, static_cast<char>('a' + round % 26));
    const bool fits = expected.size() + text.size() <= ipc::PrintArea::kBytes;
    ASSERT_EQ(area->Append(text), fits);
    if (fits) expected += text;
    if (random() % 300 != 0) continue;
    ASSERT_EQ(area->Drain(), expected);
    ASSERT_TRUE(area->empty());
    expected.clear();
  }
}

TEST(PrintArea, SurvivesAPeerThatLies) {
  const std::unique_ptr<ipc::PrintArea> area = std::make_unique<ipc::PrintArea>();
  area->tail.store(12345);
  EXPECT_FALSE(area->Append("text")) << "a tail ahead of the head";
  area->tail.store(0);
  area->head.store(UINT64_MAX);
  EXPECT_LE(area->Drain().size(), ipc::PrintArea::kBytes);
}

}  // namespace
}  // namespace worker
