#include "serve/llm/model/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/serve/llm/model/tiny_model.h"

namespace serve::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelSummary SummaryOf(const std::string& file) {
  const absl::StatusOr<Gguf> gguf = DecodeGgufUntrusted(AsBytes(file));
  EXPECT_TRUE(gguf.ok()) << gguf.status();
  return Summarise(ModelOfGguf(*gguf));
}

std::vector<std::string> RefusalsOf(GgufWriter writer, const std::vector<TinyTensor>& tensors) {
  return SummaryOf(FileOf(WithTokenizer(std::move(writer)), tensors)).refusals;
}

TEST(SummaryTest, AWholeModelIsServed) {
  const ModelSummary model = SummaryOf(TinyModel());
  EXPECT_THAT(model.refusals, IsEmpty());
  EXPECT_EQ(model.architecture, "llama");
  EXPECT_EQ(model.tokenizer, "gpt2 (smollm)");
  ASSERT_TRUE(model.sizes.has_value());
  EXPECT_EQ(model.sizes->head_width, 8u);
  EXPECT_EQ(model.sizes->vocabulary, 3u);
  EXPECT_EQ(model.sizes->rope_base, 10000);
  EXPECT_EQ(model.sizes->KvBytesOfToken(4), 2u * 1 * 2 * 8 * 4);
  ASSERT_EQ(model.types.size(), 2u);
  EXPECT_EQ(model.types[0].type, "F32");
  EXPECT_EQ(model.types[1].bytes, 32u * 34);
}

TEST(SummaryTest, OtherArchitecturesAreRefusedByName) {
  EXPECT_THAT(RefusalsOf(TinySizes("mamba"), {}), ElementsAre(HasSubstr("architecture mamba")));
  EXPECT_THAT(SummaryOf(WithTokenizer(GgufWriter()).File()).refusals,
              ElementsAre(HasSubstr("does not say its architecture")));
}

TEST(SummaryTest, SizesThatMakeNoSenseAreRefused) {
  for (const char* const key : {"block_count", "attention.head_count", "context_length"}) {
    for (const uint32_t size : {0u, UINT32_MAX}) {
      GgufWriter writer = WithTokenizer(GgufWriter());
      writer.Word("general.architecture", "llama");
      for (const char* const other : {"block_count", "embedding_length", "feed_forward_length",
                                      "attention.head_count", "context_length"})
        writer.Number(std::string("llama.") + other, std::string_view(other) == key ? size : 2);
      EXPECT_THAT(SummaryOf(writer.File()).refusals,
                  ElementsAre(HasSubstr(std::string("no llama.") + key)));
    }
  }
}

TEST(SummaryTest, FeaturesThatChangeTheLayersAreRefused) {
  const std::vector<TinyTensor> tensors = TinyTensors();
  EXPECT_THAT(RefusalsOf(TinySizes().Word("llama.rope.scaling.type", "yarn"), tensors),
              ElementsAre(HasSubstr("scales its positions (yarn)")));
  EXPECT_THAT(RefusalsOf(TinySizes().Word("llama.rope.scaling.type", "none"), tensors), IsEmpty());
  EXPECT_THAT(RefusalsOf(TinySizes().Number("llama.attention.sliding_window", 127), tensors),
              ElementsAre(HasSubstr("window of 127 tokens")));
  EXPECT_THAT(RefusalsOf(TinySizes().Number("llama.attention.sliding_window", 128), tensors),
              IsEmpty());
  EXPECT_THAT(RefusalsOf(TinySizes().Number("llama.expert_count", 8), tensors),
              ElementsAre(HasSubstr("mixture of experts")));
  EXPECT_THAT(RefusalsOf(TinySizes().Number("split.count", 2), tensors),
              ElementsAre(HasSubstr("one of 2 parts")));
  EXPECT_THAT(RefusalsOf(TinySizes().Number("llama.rope.dimension_count", 7), tensors),
              ElementsAre(HasSubstr("rotates 7")));
}

TEST(SummaryTest, EachTensorIsNeeded) {
  for (size_t i = 0; i < TinyTensors().size(); ++i) {
    std::vector<TinyTensor> tensors = TinyTensors();
    const std::string name = tensors[i].name;
    tensors.erase(tensors.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_THAT(RefusalsOf(TinySizes(), tensors),
                ElementsAre(HasSubstr("lacks tensors, such as " + name)));
  }
}

TEST(SummaryTest, EachTensorHasItsShape) {
  for (size_t i = 0; i < TinyTensors().size(); ++i) {
    std::vector<TinyTensor> tensors = TinyTensors();
    tensors[i].shape.back() += tensors[i].shape.size() == 1 ? 32 : 1;
    EXPECT_THAT(
        RefusalsOf(TinySizes(), tensors),
        ElementsAre(HasSubstr("another shape than its sizes say, such as " + tensors[i].name)));
  }
  std::vector<TinyTensor> tensors = TinyTensors();
  tensors[1].shape = {32, 1, 1};
  EXPECT_THAT(RefusalsOf(TinySizes(), tensors), IsEmpty());
}

TEST(SummaryTest, UnusedTensorsAndUnreadTypesAreRefused) {
  std::vector<TinyTensor> tensors = TinyTensors();
  tensors.push_back({"output.weight", {32, 3}});
  EXPECT_THAT(RefusalsOf(TinySizes(), tensors), IsEmpty());
  tensors.push_back({"blk.1.attn_norm.weight", {32}});
  EXPECT_THAT(RefusalsOf(TinySizes(), tensors),
              ElementsAre(HasSubstr("does not use, such as blk.1.attn_norm.weight")));
  tensors.pop_back();
  tensors.back().type = 20;
  EXPECT_THAT(RefusalsOf(TinySizes(), tensors), ElementsAre(HasSubstr("type IQ4_NL")));
}

TEST(SummaryTest, ATokenizerIsNeeded) {
  GgufWriter without = TinySizes();
  without.Number("llama.vocab_size", 3);
  EXPECT_THAT(SummaryOf(FileOf(without, TinyTensors())).refusals,
              ElementsAre(HasSubstr("no tokenizer")));
  GgufWriter other = TinySizes();
  other.Word("tokenizer.ggml.model", "bert").Words("tokenizer.ggml.tokens", {"a", "b", "c"});
  EXPECT_THAT(SummaryOf(FileOf(other, TinyTensors())).refusals,
              ElementsAre(HasSubstr("of kind bert")));
}

}  // namespace
}  // namespace serve::llm
