// The driver's way to answer with a list, in all its cases.
#include "graphs/list.h"

#include <gtest/gtest.h>

namespace {

const int* Identity(const int* item) { return item; }

TEST(AnswerList, TellsTheCountOrFillsWhatFits) {
  const int numbers[3] = {};
  const std::vector<const int*> items = {numbers, numbers + 1, numbers + 2};
  size_t count = 77;
  EXPECT_TRUE(graphs::AnswerList(items, static_cast<const int**>(nullptr), &count, &Identity));
  EXPECT_EQ(count, 3u);
  for (size_t room = 0; room <= 5; ++room) {
    const int* const untouched = numbers + 3;
    const int* out[6];
    std::fill(out, out + 6, untouched);
    count = room;
    EXPECT_TRUE(graphs::AnswerList(items, out, &count, &Identity));
    EXPECT_EQ(count, std::min<size_t>(room, 3));
    for (size_t i = 0; i < 6; ++i) {
      const int* const wanted = i >= room ? untouched : i < 3 ? numbers + i : nullptr;
      EXPECT_EQ(out[i], wanted) << room << " " << i;
    }
  }
}

TEST(AnswerList, NeedsACount) {
  const int* out[1];
  EXPECT_FALSE(graphs::AnswerList(std::vector<const int*>{}, out, nullptr, &Identity));
}

}  // namespace
