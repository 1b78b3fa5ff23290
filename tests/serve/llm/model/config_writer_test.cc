// The sizes of a model are read as they were written.
#include "serve/llm/model/config_writer.h"

#include <gtest/gtest.h>

#include <random>

#include "serve/llm/model/config_sizes.h"
#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

ModelSizes RandomSizes(const char* architecture, std::mt19937_64* random) {
  const auto up_to = [random](uint64_t most) { return 1 + (*random)() % most; };
  ModelSizes sizes;
  sizes.architecture = FindArchitecture(architecture);
  sizes.layers = up_to(100);
  sizes.kv_heads = up_to(16);
  sizes.heads = sizes.kv_heads * up_to(8);
  sizes.head_width = 2 * up_to(128);
  sizes.width = sizes.heads * sizes.head_width;
  sizes.feed_forward = up_to(kWidthMax);
  sizes.vocabulary = up_to(kVocabularyMax);
  sizes.context = up_to(kVocabularyMax);
  sizes.norm_epsilon = static_cast<float>(up_to(1000)) * 1e-6f;  // GGUF has floats
  if (!sizes.architecture->rotates) {
    sizes.kv_heads = sizes.heads;
    return sizes;
  }
  sizes.width += sizes.head_width * up_to(4);  // heads need not have all of the width
  sizes.rope_width = sizes.head_width;
  sizes.rope_base = static_cast<float>(up_to(1'000'000)) * 1.5f;
  return sizes;
}

void ExpectSame(const ModelSizes& found, const ModelSizes& expected) {
  EXPECT_EQ(found.architecture, expected.architecture);
  EXPECT_EQ(found.layers, expected.layers);
  EXPECT_EQ(found.width, expected.width);
  EXPECT_EQ(found.feed_forward, expected.feed_forward);
  EXPECT_EQ(found.heads, expected.heads);
  EXPECT_EQ(found.kv_heads, expected.kv_heads);
  EXPECT_EQ(found.head_width, expected.head_width);
  EXPECT_EQ(found.vocabulary, expected.vocabulary);
  EXPECT_EQ(found.context, expected.context);
  EXPECT_EQ(found.norm_epsilon, expected.norm_epsilon);
  EXPECT_EQ(found.rope_base, expected.rope_base);
  EXPECT_EQ(found.rope_width, expected.rope_width);
}

TEST(ConfigWriterTest, WhatIsWrittenIsReadAsTheSameSizes) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 200; ++round) {
    for (const char* const architecture : {"llama", "qwen2", "qwen3", "gpt2"}) {
      const ModelSizes sizes = RandomSizes(architecture, &random);
      const bool tied = random() % 2 == 0;
      const std::string text = ConfigJson(sizes, {.tied = tied, .first = {}, .ends = {}});
      const absl::StatusOr<ModelSizes> found = SizesOfConfig(Json::parse(text));
      ASSERT_TRUE(found.ok()) << found.status() << "\n" << text;
      ExpectSame(*found, sizes);
      EXPECT_EQ(found->head, tied ? HeadTensor::kTied : HeadTensor::kOwn);
    }
  }
}

TEST(ConfigWriterTest, TokensAreNumbersOrNull) {
  std::mt19937_64 random(harness::Seed());
  const ModelSizes sizes = RandomSizes("llama", &random);
  Json config = Json::parse(ConfigJson(sizes, {.tied = false, .first = 1, .ends = {2}}));
  EXPECT_EQ(config["bos_token_id"], 1);
  EXPECT_EQ(config["eos_token_id"], 2);
  config = Json::parse(ConfigJson(sizes, {.tied = false, .first = {}, .ends = {2, 7}}));
  EXPECT_EQ(config["eos_token_id"], (Json{2, 7}));
  EXPECT_TRUE(config.contains("bos_token_id") && config["bos_token_id"].is_null());
  config = Json::parse(ConfigJson(sizes, {}));
  EXPECT_TRUE(config.contains("eos_token_id") && config["eos_token_id"].is_null());
}

TEST(ConfigWriterTest, AHeadOfWhichAPartRotatesIsSaid) {
  std::mt19937_64 random(harness::Seed());
  ModelSizes sizes = RandomSizes("llama", &random);
  sizes.head_width = 64;
  sizes.rope_width = 16;
  const Json config = Json::parse(ConfigJson(sizes, {}));
  EXPECT_EQ(config["rope_parameters"]["partial_rotary_factor"], 0.25);
  EXPECT_FALSE(SizesOfConfig(config).ok());  // directories of such models are not served
}

}  // namespace
}  // namespace serve::llm
