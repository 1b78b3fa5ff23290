#include "base/find.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

namespace base {
namespace {

TEST(FindOrNullTest, PointsIntoTheMap) {
  std::map<int, std::string> names = {{1, "one"}};
  std::string* const one = FindOrNull(names, 1);
  ASSERT_NE(one, nullptr);
  *one = "uno";
  EXPECT_EQ(names[1], "uno");
  EXPECT_EQ(FindOrNull(names, 2), nullptr);
}

TEST(FindOrNullTest, IsConstForAConstMapAndCopiesNothing) {
  std::unordered_map<int, std::unique_ptr<int>> owners;
  owners[1] = std::make_unique<int>(7);
  const std::unordered_map<int, std::unique_ptr<int>>& same = owners;
  static_assert(std::is_same_v<decltype(FindOrNull(same, 1)), const std::unique_ptr<int>*>);
  EXPECT_EQ(**FindOrNull(same, 1), 7);
}

TEST(FindOrNullTest, TakesWhatTheMapComparesWith) {
  const std::map<std::string, int, std::less<>> numbers = {{"one", 1}};
  EXPECT_EQ(*FindOrNull(numbers, std::string_view("one")), 1);
}

TEST(FindOrTest, IsTheFallbackForAnUnknownKey) {
  const std::map<int, int> squares = {{2, 4}};
  EXPECT_EQ(FindOr(squares, 2, 0), 4);
  EXPECT_EQ(FindOr(squares, 3, -1), -1);
}

}  // namespace
}  // namespace base
