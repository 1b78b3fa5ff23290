#include "serve/llm/text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

std::string Whole(std::string_view bytes) {
  Detokenizer detokenizer;
  std::string text = detokenizer.Add(bytes);
  return text + detokenizer.Flush();
}

TEST(DetokenizerTest, ACharacterIsHeldBackUntilItIsWhole) {
  Detokenizer detokenizer;
  EXPECT_EQ(detokenizer.Add("a\xf0\x9f"), "a");
  EXPECT_EQ(detokenizer.Add("\x98"), "");
  EXPECT_EQ(detokenizer.Add("\x80z"), "\U0001F600z");
  EXPECT_EQ(detokenizer.Add("\xe4\xb8"), "");
  EXPECT_EQ(detokenizer.Flush(), "\ufffd");
  EXPECT_EQ(detokenizer.Flush(), "");
}

// The Unicode standard's own examples of the recommended practice (3.9, table 3-8 and after).
TEST(DetokenizerTest, EachLongestBeginningIsReplacedOnce) {
  EXPECT_EQ(Whole("a\xf1\x80\x80\xe1\x80\xc2"
                  "b\x80"
                  "c\x80\xbf"
                  "d"),
            "a\ufffd\ufffd\ufffdb\ufffdc\ufffd\ufffdd");
  EXPECT_EQ(Whole("\xc0\xaf"), "\ufffd\ufffd");                      // too long
  EXPECT_EQ(Whole("\xe0\x80\xaf"), "\ufffd\ufffd\ufffd");            // too long
  EXPECT_EQ(Whole("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");            // a surrogate
  EXPECT_EQ(Whole("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");  // over U+10FFFF
  EXPECT_EQ(Whole("\xff"), "\ufffd");
  EXPECT_EQ(Whole("\xf4\x8f\xbf\xbf"), "\U0010FFFF");
}

TEST(DetokenizerTest, ItDoesNotMatterWhereBytesAreCut) {
  std::mt19937_64 random(harness::Seed());
  const uint8_t some[] = {'a',  0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc2,
                          0xe0, 0xe1, 0xed, 0xf0, 0xf1, 0xf4, 0xff};
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 12, '\0');
    for (char& byte : bytes) byte = static_cast<char>(some[random() % sizeof some]);
    Detokenizer detokenizer;
    std::string text;
    for (size_t at = 0; at < bytes.size();) {
      const size_t count = 1 + random() % 3;
      text += detokenizer.Add(std::string_view(bytes).substr(at, count));
      at += count;
    }
    text += detokenizer.Flush();
    ASSERT_EQ(text, Whole(bytes));
    ASSERT_EQ(Whole(text), text);  // valid UTF-8 stays as it is
  }
}

}  // namespace
}  // namespace serve::llm
