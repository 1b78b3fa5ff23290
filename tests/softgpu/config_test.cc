// LANEWAY_SOFTGPU: what is accepted, and the sentence for what is not.
#include "softgpu/driver/config.h"

#include <gtest/gtest.h>

namespace softgpu {
namespace {

TEST(ParseConfigTest, DefaultsAndEveryKey) {
  std::string error;
  const std::optional<Config> defaults = ParseConfig("", &error);
  ASSERT_TRUE(defaults.has_value());
  EXPECT_EQ(defaults->devices, 1u);
  EXPECT_EQ(defaults->memory_bytes, uint64_t{4} << 30);
  const std::optional<Config> all = ParseConfig(
      "devices=2,memory=512MiB,sms=4,cc=9.0,sticky=context,check=1,watchdog=250,executor=llvm,"
      "cache=off",
      &error);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->devices, 2u);
  EXPECT_EQ(all->memory_bytes, uint64_t{512} << 20);
  EXPECT_EQ(all->sms, 4u);
  EXPECT_EQ(all->cc_major, 9);
  EXPECT_EQ(all->cc_minor, 0);
  EXPECT_TRUE(all->sticky_context);
  EXPECT_TRUE(all->check);
  EXPECT_EQ(all->watchdog_ms, 250u);
  EXPECT_EQ(ParseConfig("timing=/a/table.txt", &error)->timing, "/a/table.txt");
  EXPECT_EQ(all->executor, Config::Executor::kLlvm);
  EXPECT_FALSE(all->cache);
}

TEST(ParseConfigTest, RefusalsNameTheItemAndWhatIsAccepted) {
  for (const char* text : {"devices=0",
                           "devices=9",
                           "devices=",
                           "devices",
                           "memory=4",
                           "memory=4GB",
                           "memory=1MiB",
                           "memory=99999999GiB",
                           "sms=0",
                           "cc=8",
                           "cc=8.0x",
                           "sticky=no",
                           "check=yes",
                           "watchdog=0",
                           "colour=blue",
                           "executor=jit",
                           "cache=1",
                           "timing=",
                           "timing=/a/table.txt,devices=2",
                           ",devices=1"}) {
    std::string error;
    EXPECT_FALSE(ParseConfig(text, &error).has_value()) << text;
    EXPECT_NE(error.find("accepted are"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace softgpu
