#include "serve/llm/model/config_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/serve/llm/model/tiny_directory.h"

namespace serve::llm {
namespace {

using ::testing::HasSubstr;

// Through a text: numbers of a file are unsigned, those of a C++ program are not.
absl::StatusOr<ModelSizes> SizesIn(const Json& config) {
  return SizesOfConfig(Json::parse(config.dump()));
}

std::string WhyNoSizes(const Json& config) {
  return std::string(SizesIn(config).status().message());
}
std::string WhyNoSizesWith(Json config, const char* name, const Json& value) {
  config[name] = value;
  return WhyNoSizes(config);
}

TEST(ConfigSizesTest, SizesOfLlama) {
  const absl::StatusOr<ModelSizes> sizes = SizesIn(TinyConfig());
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->architecture->name, "llama");
  EXPECT_EQ(sizes->layers, 1u);
  EXPECT_EQ(sizes->width, 32u);
  EXPECT_EQ(sizes->feed_forward, 48u);
  EXPECT_EQ(sizes->heads, 4u);
  EXPECT_EQ(sizes->kv_heads, 2u);
  EXPECT_EQ(sizes->head_width, 8u);
  EXPECT_EQ(sizes->rope_width, 8u);
  EXPECT_EQ(sizes->vocabulary, 260u);
  EXPECT_EQ(sizes->context, 128u);
  EXPECT_EQ(sizes->rope_base, 10000);
  EXPECT_EQ(sizes->norm_epsilon, 1e-6);
  EXPECT_EQ(sizes->head, HeadTensor::kOwn);
}

TEST(ConfigSizesTest, SizesOfGpt2) {
  Json config = {{"architectures", {"GPT2LMHeadModel"}},
                 {"n_layer", 2},
                 {"n_embd", 24},
                 {"n_head", 3},
                 {"n_inner", nullptr},
                 {"n_positions", 64},
                 {"vocab_size", 7}};
  const absl::StatusOr<ModelSizes> sizes = SizesIn(config);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->feed_forward, 96u);
  EXPECT_EQ(sizes->kv_heads, 3u);
  EXPECT_EQ(sizes->head_width, 8u);
  EXPECT_EQ(sizes->rope_width, 0u);
  EXPECT_EQ(sizes->head, HeadTensor::kTied);
  EXPECT_THAT(WhyNoSizesWith(config, "activation_function", "relu"), HasSubstr("activation relu"));
  EXPECT_THAT(WhyNoSizesWith(config, "scale_attn_weights", false), HasSubstr("scale_attn_weights"));
  EXPECT_THAT(WhyNoSizesWith(config, "scale_attn_by_inverse_layer_idx", true),
              HasSubstr("inverse"));
}

TEST(ConfigSizesTest, ClassesHaveDefaultsOfTheirOwn) {
  Json config = TinyConfig();
  config.erase("num_key_value_heads");
  EXPECT_EQ(SizesIn(config)->kv_heads, 4u);
  config["architectures"] = {"Qwen3ForCausalLM"};
  EXPECT_THAT(WhyNoSizes(config), HasSubstr("no num_key_value_heads"));
  config["num_key_value_heads"] = 2;
  EXPECT_EQ(SizesIn(config)->head_width, 128u);
  config["head_dim"] = 16;
  EXPECT_EQ(SizesIn(config)->head_width, 16u);
  config["tie_word_embeddings"] = true;
  EXPECT_EQ(SizesIn(config)->head, HeadTensor::kTied);
}

TEST(ConfigSizesTest, OtherArchitecturesAreRefusedByName) {
  for (const Json& none : {Json(), Json::array(), Json::array({"A", "B"}), Json::array({1})}) {
    EXPECT_THAT(WhyNoSizesWith(TinyConfig(), "architectures", none), HasSubstr("does not say"));
  }
  EXPECT_THAT(WhyNoSizesWith(TinyConfig(), "architectures", {"MixtralForCausalLM"}),
              HasSubstr("of architecture MixtralForCausalLM; served are LlamaForCausalLM, "));
}

TEST(ConfigSizesTest, SizesThatMakeNoSenseAreRefused) {
  for (const char* const name :
       {"num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads",
        "max_position_embeddings", "vocab_size", "rms_norm_eps", "rope_theta", "head_dim"}) {
    for (const Json& value : {Json(0), Json(-1), Json(1e15)}) {
      EXPECT_THAT(WhyNoSizesWith(TinyConfig(), name, value), HasSubstr(name)) << value;
    }
  }
  EXPECT_THAT(WhyNoSizesWith(TinyConfig(), "num_key_value_heads", 3), HasSubstr("uneven"));
  EXPECT_THAT(WhyNoSizesWith(TinyConfig(), "head_dim", 7), HasSubstr("heads of 7"));
  EXPECT_THAT(WhyNoSizesWith(TinyConfig(), "num_attention_heads", 64), HasSubstr("head_dim"));
}

TEST(ConfigSizesTest, MembersThatChangeTheLayersAreRefused) {
  const std::pair<const char*, Json> members[] = {
      {"quantization_config", Json::object({{"bits", 4}})},
      {"auto_map", Json::object()},
      {"attention_bias", true},
      {"mlp_bias", true},
      {"hidden_act", "gelu"},
      {"partial_rotary_factor", 0.5},
      {"is_encoder_decoder", true}};
  for (const auto& [name, value] : members) {
    EXPECT_NE(WhyNoSizesWith(TinyConfig(), name, value), "") << name;
    EXPECT_EQ(WhyNoSizesWith(TinyConfig(), name, nullptr), "") << name;
  }
  EXPECT_THAT(WhyNoSizesWith(TinyConfig(), "num_local_experts", 8),
              HasSubstr("mixture of experts"));
  EXPECT_EQ(WhyNoSizesWith(TinyConfig(), "attention_bias", false), "");
}

TEST(ConfigSizesTest, WindowsInUseAreRefused) {
  Json mistral = TinyConfig();
  mistral["architectures"] = {"MistralForCausalLM"};
  mistral["max_position_embeddings"] = 8192;
  EXPECT_THAT(WhyNoSizes(mistral), HasSubstr("window of 4096"));
  EXPECT_EQ(WhyNoSizesWith(mistral, "sliding_window", nullptr), "");
  EXPECT_EQ(WhyNoSizesWith(mistral, "sliding_window", 8192), "");
  EXPECT_THAT(WhyNoSizesWith(mistral, "sliding_window", 8191), HasSubstr("window of 8191"));
  Json qwen = mistral;
  qwen["architectures"] = {"Qwen2ForCausalLM"};
  qwen["sliding_window"] = 100;
  EXPECT_EQ(WhyNoSizes(qwen), "");
  EXPECT_THAT(WhyNoSizesWith(qwen, "use_sliding_window", true), HasSubstr("window of 100"));
  EXPECT_EQ(WhyNoSizesWith(qwen, "layer_types", {"full_attention"}), "");
  EXPECT_THAT(WhyNoSizesWith(qwen, "layer_types", {"full_attention", "sliding_attention"}),
              HasSubstr("otherwise than fully (sliding_attention)"));
}

TEST(ConfigSizesTest, ScalingOfPositionsIsReadOrRefusedByName) {
  const auto why = [](const Json& scaling) {
    return WhyNoSizesWith(TinyConfig(), "rope_scaling", scaling);
  };
  EXPECT_EQ(why(nullptr), "");
  EXPECT_EQ(why({{"rope_type", "default"}}), "");
  EXPECT_THAT(why({{"type", "yarn"}, {"factor", 2.0}}), HasSubstr("scales its positions (yarn)"));
  EXPECT_THAT(why({{"factor", 2.0}}), HasSubstr("scales its positions ()"));
  EXPECT_THAT(why({{"rope_type", "llama3"}, {"factor", 8.0}}), HasSubstr("make no sense"));
  Json config = TinyConfig();
  config["rope_parameters"] = {{"rope_theta", 500000.0}, {"rope_type", "default"}};
  EXPECT_EQ(SizesIn(config)->rope_base, 500000);
}

TEST(ConfigSizesTest, FactorsOfLlama3) {
  Json config = TinyConfig();
  config["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 128}};
  const absl::StatusOr<ModelSizes> sizes = SizesIn(config);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  // Pairs turn once in 2 pi 10^i tokens: 20 times, 2.04 times, and less than once in 128.
  ASSERT_EQ(sizes->rope_factors.size(), 4u);
  EXPECT_EQ(sizes->rope_factors[0], 1);
  const double kept = (128 / (2 * M_PI * 10) - 1) / 3;
  EXPECT_FLOAT_EQ(sizes->rope_factors[1], static_cast<float>(1 / ((1 - kept) / 8 + kept)));
  EXPECT_EQ(sizes->rope_factors[2], 8);
  EXPECT_EQ(sizes->rope_factors[3], 8);
}

}  // namespace
}  // namespace serve::llm
