#include "daemon/control/command.h"

#include <gtest/gtest.h>

namespace control {
namespace {

TEST(CommandTextTest, TakesWhatItKnows) {
  Command command;
  ASSERT_TRUE(ParseCommandUntrusted(
      R"({"command":"limit","id":3,"bytes":4294967296,"text":"x","after":9, "force":true})",
      &command));
  EXPECT_EQ(command.name, "limit");
  EXPECT_EQ(command.id, 3u);
  EXPECT_EQ(command.bytes, uint64_t{1} << 32);
  EXPECT_EQ(command.text, "x");
  EXPECT_EQ(command.after, 9u);
  EXPECT_TRUE(command.force);
}

TEST(CommandTextTest, RefusesOtherTypes) {
  for (const char* const text :
       {"", "[]", "3", "{}", R"({"command":3})", R"({"command":"why","id":-1})",
        R"({"command":"why","id":"3"})", R"({"command":"why","id":1.5})",
        R"({"command":"policy","text":{}})", R"({"command":"stop","force":1})",
        R"({"command":"why","id":99999999999999999999999})"}) {
    Command command;
    EXPECT_FALSE(ParseCommandUntrusted(text, &command)) << text;
  }
}

}  // namespace
}  // namespace control
