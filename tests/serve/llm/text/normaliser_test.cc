#include "serve/llm/text/normaliser.h"

#include <gtest/gtest.h>

namespace serve::llm {
namespace {

std::string Of(const std::string& text, const std::vector<TextStep>& steps, bool begins = true) {
  const absl::StatusOr<std::string> made = Normalised(text, steps, begins);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.value_or("");
}

TEST(NormaliserTest, NormalFormsAreUnicodes) {
  EXPECT_EQ(Of("e\u0301\ufb01", {{TextChange::kNfc, "", ""}}), "\u00e9\ufb01");
  EXPECT_EQ(Of("\u00e9\ufb01", {{TextChange::kNfd, "", ""}}), "e\u0301\ufb01");
  EXPECT_EQ(Of("e\u0301\ufb01", {{TextChange::kNfkc, "", ""}}), "\u00e9fi");
  EXPECT_EQ(Of("\u00e9\ufb01", {{TextChange::kNfkd, "", ""}}), "e\u0301fi");
  EXPECT_EQ(Of(std::string("a\0\u212b", 5), {{TextChange::kNfc, "", ""}}),
            std::string("a\0\u00c5", 4));
}

TEST(NormaliserTest, StepsApplyInTurn) {
  EXPECT_EQ(Of("a a", {{TextChange::kPrepend, "", " "}, {TextChange::kReplace, " ", "_"}}), "_a_a");
  EXPECT_EQ(Of("a a", {{TextChange::kReplace, " ", "_"}, {TextChange::kPrepend, "", " "}}), " a_a");
}

TEST(NormaliserTest, MarksAreBeforeTextsOfTheirKind) {
  const TextStep always = {TextChange::kPrepend, "", "_"};
  const TextStep once = {TextChange::kPrependOnce, "", "_"};
  const TextStep first = {TextChange::kPrependFirst, "", "_"};
  EXPECT_EQ(Of("", {always}), "");
  EXPECT_EQ(Of("_a", {always}), "__a");
  EXPECT_EQ(Of("", {once}), "_");
  EXPECT_EQ(Of("_a", {once}), "_a");
  EXPECT_EQ(Of("a", {once}, false), "_a");
  EXPECT_EQ(Of("a", {first}), "_a");
  EXPECT_EQ(Of("_a", {first}), "_a");
  EXPECT_EQ(Of("a", {first}, false), "a");
}

TEST(NormaliserTest, TextsDoNotGrowWithoutBounds) {
  const std::vector<TextStep> steps(6, {TextChange::kReplace, "a", std::string(8, 'a')});
  EXPECT_FALSE(Normalised("aa", steps, true).ok());
  EXPECT_TRUE(Normalised("b", steps, true).ok());
}

}  // namespace
}  // namespace serve::llm
