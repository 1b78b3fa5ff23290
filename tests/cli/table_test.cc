#include "cli/table.h"

#include <gtest/gtest.h>

#include <string>

namespace cli {
namespace {

TEST(TableTest, PrintableKeepsLettersAndNothingElse) {
  EXPECT_EQ(Printable("k\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "k\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(Printable("\xc0\xaf"), "??") << "a letter in too many bytes";
  EXPECT_EQ(Printable("\xed\xa0\x80"), "???") << "half of a pair";
  EXPECT_EQ(Printable("\xef\xbf\xbe"), "???") << "no character of XML";
  EXPECT_EQ(Printable("a\xe2\x82"), "a??") << "the end is missing";
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J"),
            "??2J")
      << "a control character of two bytes";
  EXPECT_EQ(Printable(std::string("a\0b\x7f", 4)), "a?b?");
}

}  // namespace
}  // namespace cli
