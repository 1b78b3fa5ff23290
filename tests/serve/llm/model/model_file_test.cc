#include "serve/llm/model/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/serve/llm/model/tiny_directory.h"
#include "tests/serve/llm/model/tiny_model.h"

namespace serve::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Object = nlohmann::json;

class ModelFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/model_file_XXXXXX";
    ASSERT_NE(mkdtemp(dir), nullptr);
    dir_ = dir;
    Write("config.json", TinyConfig().dump());
    Write("tokenizer.json", TinyTokenizer().dump());
    Write("model.safetensors", SafetensorsOf(TinyDirectoryTensors()));
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << text;
  }
  void Remove(const std::string& name) { std::filesystem::remove(dir_ + "/" + name); }
  std::string WhyNotOpened(const std::string& path) {
    return std::string(ModelFile::OpenUntrusted(path).status().message());
  }
  std::string WhyNotOpened() { return WhyNotOpened(dir_); }
  std::vector<std::string> Refusals() {
    const absl::StatusOr<ModelFile> file = ModelFile::OpenUntrusted(dir_);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? file->model().Refusals() : std::vector<std::string>{"not opened"};
  }
  ModelText Text() {
    const absl::StatusOr<ModelFile> file = ModelFile::OpenUntrusted(dir_);
    EXPECT_TRUE(file.ok() && file->model().text.ok()) << file.status();
    return file.ok() && file->model().text.ok() ? *file->model().text : ModelText();
  }
  // Two files, and an index of them.
  void Split() {
    std::vector<std::pair<std::string, std::vector<uint64_t>>> first = TinyDirectoryTensors();
    const std::vector<std::pair<std::string, std::vector<uint64_t>>> second(first.begin() + 5,
                                                                            first.end());
    first.resize(5);
    Remove("model.safetensors");
    Write("a.safetensors", SafetensorsOf(first));
    Write("b.safetensors", SafetensorsOf(second));
    for (const auto& [name, shape] : first) index_["weight_map"][name] = "a.safetensors";
    for (const auto& [name, shape] : second) index_["weight_map"][name] = "b.safetensors";
    Write("model.safetensors.index.json", index_.dump());
  }

  std::string dir_;
  Object index_;
};

TEST_F(ModelFileTest, ADirectoryIsAModel) {
  const absl::StatusOr<ModelFile> file = ModelFile::OpenUntrusted(dir_ + "/");
  ASSERT_TRUE(file.ok()) << file.status();
  const Model& model = file->model();
  EXPECT_THAT(model.Refusals(), IsEmpty());
  EXPECT_EQ(model.format, "safetensors");
  EXPECT_EQ(model.architecture, "LlamaForCausalLM");
  EXPECT_EQ(model.name, dir_.substr(5));
  EXPECT_EQ(model.file_tensors.all().size(), 12u);
  ASSERT_NE(model.tensors.Find("blk.0.attn_q.weight"), nullptr);
  EXPECT_EQ(model.tensors.Find("blk.0.attn_q.weight")->layout, TensorLayout::kHalves);
  EXPECT_EQ(model.tensors.Find("blk.0.attn_v.weight")->layout, TensorLayout::kRows);
  EXPECT_EQ(model.tensors.Find("blk.0.ffn_down.weight")->columns, 48u);
  // One more than the file has, which stands for no text.
  EXPECT_EQ(model.tokenizer->size(), 260u);
  EXPECT_EQ(model.tokenizer->BytesOf(259), "");
}

TEST_F(ModelFileTest, AGgufFileIsAModel) {
  Write("m.gguf", TinyModel());
  absl::StatusOr<ModelFile> file = ModelFile::OpenUntrusted(dir_ + "/m.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const ModelFile moved = *std::move(file);
  EXPECT_EQ(moved.model().format, "gguf");
  EXPECT_EQ(moved.model().version, 3u);
  EXPECT_EQ(moved.model().name, "tiny");
  EXPECT_EQ(moved.model().tensors.Find("output_norm.weight")->Elements(), 32u);
  EXPECT_THAT(moved.model().text->ends, IsEmpty());
  Write("unnamed.gguf", GgufWriter().File());
  EXPECT_EQ(ModelFile::OpenUntrusted(dir_ + "/unnamed.gguf")->model().name, "unnamed");
  EXPECT_THAT(WhyNotOpened(dir_ + "/config.json"), HasSubstr("config.json is no GGUF file"));
}

TEST_F(ModelFileTest, FilesThatAreNeededAreNamed) {
  Remove("tokenizer.json");
  EXPECT_THAT(Refusals(), ElementsAre(HasSubstr("no tokenizer.json")));
  Remove("model.safetensors");
  EXPECT_THAT(WhyNotOpened(), HasSubstr(" has no .safetensors file"));
  Remove("config.json");
  EXPECT_THAT(WhyNotOpened(), HasSubstr(" has no config.json"));
}

TEST_F(ModelFileTest, DamagedFilesAreNamed) {
  Write("config.json", "{");
  Write("tokenizer.json", "[]");
  EXPECT_THAT(Refusals(), ElementsAre(HasSubstr("has a config.json that is damaged"),
                                      HasSubstr("has a tokenizer.json that is damaged")));
  Write("config.json", "{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}");
  EXPECT_THAT(Refusals(), ElementsAre(HasSubstr("64 deep"), HasSubstr("tokenizer.json")));
  Write("model.safetensors", "nothing");
  EXPECT_THAT(WhyNotOpened(), HasSubstr("model.safetensors is cut short"));
}

TEST_F(ModelFileTest, SideFilesAreBounded) {
  for (const char* const name : {"config.json", "generation_config.json", "chat_template.jinja"}) {
    SetUp();
    Write(name, std::string((1 << 20) + 1, ' '));
    EXPECT_THAT(WhyNotOpened(), HasSubstr(std::string(name) + " is over 1 MiB"));
    std::filesystem::remove_all(dir_);
  }
}

TEST_F(ModelFileTest, TensorsMayBeInSeveralFiles) {
  Split();
  EXPECT_THAT(Refusals(), IsEmpty());
  // Without an index all files count.
  Remove("model.safetensors.index.json");
  EXPECT_THAT(Refusals(), IsEmpty());
  // A whole file goes before.
  Write("model.safetensors", SafetensorsOf({{"other", {1}}}));
  EXPECT_THAT(Refusals().front(), HasSubstr("lacks tensors, such as model.embed_tokens.weight"));
}

TEST_F(ModelFileTest, FilesAndIndexAgree) {
  Split();
  const auto why = [this](const char* tensor, const Object& file) {
    Object index = index_;
    index["weight_map"][tensor] = file;
    Write("model.safetensors.index.json", index.dump());
    return WhyNotOpened();
  };
  EXPECT_THAT(why("more", "a.safetensors"), HasSubstr("a.safetensors lacks tensor more"));
  EXPECT_THAT(why("lm_head.weight", "b.safetensors"), HasSubstr("which is not there by"));
  EXPECT_THAT(why("more", "c.safetensors"), HasSubstr("cannot open"));
  for (const Object& elsewhere : {Object("../a.safetensors"), Object("/a.safetensors"), Object(1),
                                  Object("a.bin"), Object(".safetensors")}) {
    EXPECT_THAT(why("more", elsewhere), HasSubstr("names no file beside it for tensor more"));
  }
  Write("model.safetensors.index.json", "{}");
  EXPECT_THAT(WhyNotOpened(), HasSubstr("no weight_map"));
}

TEST_F(ModelFileTest, ATensorIsInOneFile) {
  Split();
  Remove("model.safetensors.index.json");
  Write("c.safetensors", SafetensorsOf({{"lm_head.weight", {260, 32}}}));
  EXPECT_THAT(WhyNotOpened(), HasSubstr("c.safetensors has tensor lm_head.weight, as another"));
}

TEST_F(ModelFileTest, TheEmbeddingMayBeTheHead) {
  Object config = TinyConfig();
  config["tie_word_embeddings"] = true;
  Write("config.json", config.dump());
  EXPECT_THAT(Refusals(), IsEmpty());  // both are 0
  std::string file = SafetensorsOf(TinyDirectoryTensors());
  file[file.size() - 1] = 1;
  Write("model.safetensors", file);
  EXPECT_THAT(Refusals(), IsEmpty());
  const size_t header = 8 + static_cast<size_t>(*reinterpret_cast<const uint64_t*>(file.data()));
  file[header] = 1;
  Write("model.safetensors", file);
  EXPECT_THAT(Refusals(), ElementsAre(HasSubstr("tie_word_embeddings")));
  auto tensors = TinyDirectoryTensors();
  tensors.erase(tensors.begin());
  Write("model.safetensors", SafetensorsOf(tensors));
  EXPECT_THAT(Refusals(), IsEmpty());
  Write("config.json", TinyConfig().dump());
  EXPECT_THAT(Refusals(), ElementsAre(HasSubstr("lacks tensors, such as lm_head.weight")));
}

TEST_F(ModelFileTest, TablesOfEarlierVersionsArePassedOver) {
  auto tensors = TinyDirectoryTensors();
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {4}});
  Write("model.safetensors", SafetensorsOf(tensors));
  EXPECT_THAT(Refusals(), IsEmpty());
  tensors.push_back({"h.0.attn.bias", {4}});
  Write("model.safetensors", SafetensorsOf(tensors));
  EXPECT_THAT(Refusals(), ElementsAre(HasSubstr("does not use, such as h.0.attn.bias")));
}

TEST_F(ModelFileTest, EndsAreThoseOfGenerationAndOfTheTokenizer) {
  EXPECT_THAT(Text().ends, IsEmpty());
  Object config = TinyConfig();
  config["eos_token_id"] = 7;
  config["bos_token_id"] = 257;
  Write("config.json", config.dump());
  EXPECT_THAT(Text().ends, ElementsAre(7));
  EXPECT_EQ(Text().first_token, "<s>");
  Write("generation_config.json", R"({"eos_token_id": [9, 8, 9]})");
  EXPECT_THAT(Text().ends, ElementsAre(8, 9));
  Write("tokenizer_config.json", R"({"eos_token": {"content": "</s>"}, "bos_token": null})");
  EXPECT_THAT(Text().ends, ElementsAre(8, 9, 258));
  EXPECT_EQ(Text().end_token, "</s>");
  for (const char* const wrong : {"260", "-1", "\"</s>\"", "[1, 4294967296]"}) {
    Write("generation_config.json", std::string("{\"eos_token_id\":") + wrong + "}");
    EXPECT_THAT(Refusals(), ElementsAre(HasSubstr("none of its tokens"))) << wrong;
  }
}

TEST_F(ModelFileTest, TheTemplateIsTheFilesOrTheDefaultOne) {
  EXPECT_EQ(Text().chat_template, "");
  Write("tokenizer_config.json", R"({"chat_template": "one"})");
  EXPECT_EQ(Text().chat_template, "one");
  Write("tokenizer_config.json", R"({"chat_template": [
    {"name": "tool_use", "template": "two"}, {"name": "default", "template": "three"}]})");
  EXPECT_EQ(Text().chat_template, "three");
  Write("chat_template.jinja", "four");
  EXPECT_EQ(Text().chat_template, "four");
  Write("tokenizer_config.json", "{");
  EXPECT_THAT(Refusals(), ElementsAre(HasSubstr("has a tokenizer_config.json that is damaged")));
}

TEST_F(ModelFileTest, ATokenizerHasNoMoreTokensThanTheLayers) {
  Object config = TinyConfig();
  config["vocab_size"] = 258;
  Write("config.json", config.dump());
  EXPECT_THAT(Refusals(), ::testing::Contains(HasSubstr("a tokenizer of 259 tokens")));
}

TEST(ModelOfGgufTest, EndsAndTemplateAreTheKeys) {
  const auto text = [](const GgufWriter& writer) {
    const std::string file = FileOf(WithTokenizer(writer), TinyTensors());
    return ModelOfGguf(*DecodeGgufUntrusted(AsBytes(file))).text;
  };
  const absl::StatusOr<ModelText> whole = text(TinySizes()
                                                   .Number("tokenizer.ggml.eos_token_id", 2)
                                                   .Number("tokenizer.ggml.eot_token_id", 1)
                                                   .Number("tokenizer.ggml.bos_token_id", 0)
                                                   .Word("tokenizer.chat_template", "{{ x }}"));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->ends, ElementsAre(1, 2));
  EXPECT_EQ(whole->first_token, "a");
  EXPECT_EQ(whole->end_token, "ab");
  EXPECT_EQ(whole->chat_template, "{{ x }}");
  EXPECT_THAT(
      std::string(text(TinySizes().Number("tokenizer.ggml.eos_token_id", 3)).status().message()),
      HasSubstr("token 3, which is none of its tokens"));
}

}  // namespace
}  // namespace serve::llm
