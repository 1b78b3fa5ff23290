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

TEST(CommandTextTest, TakesTheTermsOfAJob) {
  Command command;
  ASSERT_TRUE(ParseCommandUntrusted(
      R"({"command":"job","pid":3,"terms":{"priority":0,"weight":300,"deadline_us":20000,"gang":2,
          "devices":[1,0],"label":"night"}})",
      &command));
  EXPECT_EQ(command.scheduling.priority, 0u);
  EXPECT_EQ(command.scheduling.weight, 300u);
  EXPECT_EQ(command.scheduling.deadline_us, 20'000u);
  EXPECT_EQ(command.scheduling.gang, 2u);
  EXPECT_EQ(command.scheduling.device_count, 2u);
  EXPECT_EQ(command.scheduling.devices[0], 1);
  EXPECT_STREQ(command.scheduling.label, "night");
  for (const char* const terms :
       {"3", R"({"priority":100})", R"({"weight":0})", R"({"weight":4294967396})", R"({"gang":65})",
        R"({"devices":[8]})", R"({"devices":[1,1]})", R"({"devices":["1"]})",
        R"({"devices":[0,1,2,3,4,5,6,7,0]})", R"({"label":"a\nb"})", R"({"deadline_us":-1})"}) {
    Command refused;
    EXPECT_FALSE(
        ParseCommandUntrusted(std::string(R"({"command":"job","terms":)") + terms + "}", &refused))
        << terms;
  }
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
