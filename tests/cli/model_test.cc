#include "cli/model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/serve/llm/model/tiny_model.h"

namespace cli {
namespace {

serve::llm::ModelSummary Tiny(const std::string& file) {
  return serve::llm::Summarise(
      serve::llm::ModelOfGguf(*serve::llm::DecodeGgufUntrusted(serve::llm::AsBytes(file))));
}

TEST(ModelTest, TextAndJsonSayTheSame) {
  const std::string file = serve::llm::TinyModel();
  const std::string text = ModelText(Tiny(file));
  EXPECT_NE(text.find("128 tokens"), std::string::npos) << text;
  EXPECT_NE(text.find("128 bytes a token in f32, 64 in f16"), std::string::npos) << text;
  EXPECT_EQ(text.find("refused"), std::string::npos) << text;
  const nlohmann::json json = nlohmann::json::parse(ModelJson(Tiny(file)));
  EXPECT_EQ(json["architecture"], "llama");
  EXPECT_EQ(json["sizes"]["context"], 128);
  EXPECT_EQ(json["sizes"]["kv_bytes_of_token"]["f16"], 64);
  EXPECT_EQ(json["types"][1]["bytes"], 32 * 34);
  EXPECT_TRUE(json["refusals"].empty());
}

TEST(ModelTest, RefusalsAreListedAndSteerNoTerminal) {
  const std::string file = serve::llm::FileOf(serve::llm::TinySizes("\x1b[2J"), {});
  const std::string text = ModelText(Tiny(file));
  EXPECT_NE(text.find("It would be refused"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(ModelJson(Tiny(file)))["refusals"].size(), 2u);
}

}  // namespace
}  // namespace cli
