#include "replay/callees.h"

#include <gtest/gtest.h>

#include "ipc/calls/limits.h"

namespace replay {
namespace {

// A kernel with a pointer, a char and a structure of 14 bytes at offset 12.
Callee Kernel() {
  const Field parameters[] = {{0, 8}, {8, 1}, {12, 14}};
  return KernelCallee({1, 2, 3, 4}, "scale", parameters, 32);
}

TEST(CalleesTest, EqualCalleesHaveOneNumber) {
  Callees callees;
  EXPECT_EQ(callees.Intern(Kernel()), 0u);
  EXPECT_EQ(callees.Intern(CalleeOf(OpKind::kCopy)), 1u);
  EXPECT_EQ(callees.Intern(Kernel()), 0u);
  Callee other = Kernel();
  other.module[0] = 7;
  EXPECT_EQ(callees.Intern(other), 2u);
  EXPECT_EQ(callees.at(0), Kernel());
}

TEST(CalleesTest, WordsCoverTheArgumentsAndRespectFields) {
  Callees callees;
  const uint32_t number = *callees.Intern(Kernel());
  std::vector<std::pair<uint32_t, uint32_t>> words;
  for (const Word& word : callees.words(number)) {
    if (word.offset >= sizeof(LaunchShape))
      words.push_back({word.offset - sizeof(LaunchShape), word.bytes});
  }
  const std::vector<std::pair<uint32_t, uint32_t>> expected = {
      {0, 8}, {8, 1}, {9, 1}, {10, 2}, {12, 4}, {16, 8}, {24, 2}, {26, 2}, {28, 4}};
  EXPECT_EQ(words, expected);
}

TEST(CalleesTest, TheShapeOfALaunchIsEightWords) {
  Callees callees;
  const uint32_t number = *callees.Intern(Kernel());
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(callees.words(number)[i].offset, 4 * i);
    EXPECT_EQ(callees.words(number)[i].bytes, 4u);
  }
}

TEST(CalleesTest, RefusesFieldsThatAreNoLayout) {
  Callees callees;
  Callee overlapping = Kernel();
  overlapping.fields.back().offset -= 4;
  overlapping.fields[overlapping.fields.size() - 2].bytes = 8;
  EXPECT_EQ(callees.Intern(overlapping), std::nullopt);
  Callee beyond = Kernel();
  beyond.argument_bytes -= 8;
  EXPECT_EQ(callees.Intern(beyond), std::nullopt);
  Callee empty = Kernel();
  empty.fields.back().bytes = 0;
  EXPECT_EQ(callees.Intern(empty), std::nullopt);
  Callee copy = CalleeOf(OpKind::kCopy);
  copy.fields.pop_back();
  EXPECT_EQ(callees.Intern(copy), std::nullopt);
  Callee nameless = Kernel();
  nameless.name.clear();
  EXPECT_EQ(callees.Intern(nameless), std::nullopt);
  Callee shapeless = Kernel();
  shapeless.fields.erase(shapeless.fields.begin());
  EXPECT_EQ(callees.Intern(shapeless), std::nullopt);
  EXPECT_EQ(callees.size(), 0u);
}

TEST(CalleesTest, TheTableIsBounded) {
  Callees callees;
  Callee kernel = Kernel();
  for (uint64_t i = 0; i < ipc::limits::kRecordedCalleesMax; ++i) {
    kernel.module[1] = i;
    ASSERT_TRUE(callees.Intern(kernel).has_value());
  }
  EXPECT_TRUE(callees.Intern(kernel).has_value());
  kernel.module[1] = ~uint64_t{0};
  EXPECT_EQ(callees.Intern(kernel), std::nullopt);
}

}  // namespace
}  // namespace replay
