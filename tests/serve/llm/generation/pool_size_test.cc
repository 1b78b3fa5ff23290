// How many blocks an engine has, and when they are too few.
#include "serve/llm/engine/pool_size.h"

#include <gtest/gtest.h>

#include <string>

#include "serve/llm/serve_options.h"

namespace serve::llm {
namespace {

TEST(PoolSizeTest, WhatIsAskedForIsTaken) {
  EXPECT_EQ(*PoolBlocks({.blocks = 9, .context_max = 130, .requests_max = 4}, 0, 100), 9);
  EXPECT_EQ(*PoolBlocks({.bytes = 950, .context_max = 130, .requests_max = 4}, 0, 100), 9);
}

TEST(PoolSizeTest, AShareIsAtMostWhatAStepCanUse) {
  EXPECT_EQ(*PoolBlocks({.context_max = 130, .requests_max = 4}, 8000, 100), 20);
  EXPECT_EQ(*PoolBlocks({.context_max = 130, .requests_max = 4}, 1'000'000, 100), 36);
}

TEST(PoolSizeTest, ALongestRequestMustFit) {
  EXPECT_FALSE(PoolBlocks({.blocks = 8, .context_max = 130, .requests_max = 4}, 0, 100).ok());
  EXPECT_FALSE(PoolBlocks({.bytes = 899, .context_max = 130, .requests_max = 4}, 0, 100).ok());
  EXPECT_FALSE(PoolBlocks({.context_max = 130, .requests_max = 4}, 3500, 100).ok());
  EXPECT_NE(PoolBlocks({.blocks = 8, .context_max = 130, .requests_max = 4}, 0, 100)
                .status()
                .message()
                .find("--kv-blocks=9"),
            std::string::npos);
}

TEST(ServeOptionsTest, SizesHaveUnits) {
  EXPECT_EQ(BytesOf("12"), 12u);
  EXPECT_EQ(BytesOf("3MiB"), 3u << 20);
  for (const char* const text : {"", "MiB", "3 MiB", "3MB", "-1", "99999999999999999GiB"})
    EXPECT_EQ(BytesOf(text), 0u) << text;
}

TEST(ServeOptionsTest, WordsAreWhatWasSaid) {
  ServeOptions options;
  EXPECT_TRUE(WordsOf(options).empty());
  options.batching = "orca";
  options.kv_blocks = 7;
  EXPECT_EQ(WordsOf(options), (std::vector<std::string>{"--batching=orca", "--kv-blocks=7"}));
}

TEST(ServeOptionsTest, OptionsThatMakeNoSenseAreRefused) {
  const Model no_model = ModelOfDirectoryUntrusted({.name = "none"}, {});
  const auto why = [&no_model](const ServeOptions& options) {
    return std::string(OptionsForModel(options, "PATH", no_model, {}).status().message());
  };
  EXPECT_EQ(why({}).find("PATH "), 0u);  // the model is refused
  EXPECT_EQ(why({.batching = "all"}).find("--batching"), 0u);
  EXPECT_EQ(why({.order = "lifo"}).find("--order"), 0u);
  EXPECT_EQ(why({.requests_max = 0}).find("--requests-max"), 0u);
  EXPECT_EQ(why({.requests_max = 8, .rows_max = 7}).find("--requests-max"), 0u);
  EXPECT_EQ(why({.context = -1}).find("--context"), 0u);
  EXPECT_EQ(why({.kv_memory = "much"}).find("--kv-memory"), 0u);
  EXPECT_EQ(why({.kv_type = "f8"}).find("--kv-type"), 0u);
  EXPECT_NE(why({.kv_blocks = 1, .kv_memory = "1GiB"}).find("not both"), std::string::npos);
}

}  // namespace
}  // namespace serve::llm
