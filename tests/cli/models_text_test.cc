#include "cli/models_text.h"

#include <gtest/gtest.h>

#include <string>

#include "cli/top_text.h"

namespace cli {
namespace {

using Json = nlohmann::json;

TEST(ModelsTextTest, ALinePerModel) {
  const Json models = Json::parse(R"([
    {"id":"small","state":"ready","url":"http://127.0.0.1:8000/v1","pid":9,"running":3,"waiting":2,
     "tokens_per_second":41.26,"generated_tokens":5000,"kv_blocks":200,"kv_blocks_used":50,
     "prefix_query_tokens":400,"prefix_hit_tokens":100,"preemptions":1,"engine_restarts":4},
    {"id":"la\u001brge","state":"loading","loaded":0.431,"url":"http://127.0.0.1:8000/v1"}])");
  const std::string text = ModelsText(models);
  for (const char* const word :
       {"small", "ready", "41.3", "5000", "25 %", "la?rge", "loading 43 %"})
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  const std::string top = TopText(Json{{"policy", "fair"},
                                       {"devices", Json::array()},
                                       {"sessions", Json::array()},
                                       {"models", models}}
                                      .dump(),
                                  0, 0);
  EXPECT_NE(top.find("41.3"), std::string::npos) << top;
}

TEST(ModelsTextTest, WithoutModelsThereIsNoTable) {
  EXPECT_EQ(ModelsText(Json::array()), "");
  EXPECT_EQ(ModelsText(Json()), "");
}

TEST(ModelsTextTest, FieldsOfOtherTypesAreNotRead) {
  const Json odd = Json::parse(R"([7, null, {"id":7,"state":[],"running":"x","loaded":{}}])");
  EXPECT_NE(ModelsText(odd).find("MODEL"), std::string::npos);
  EXPECT_EQ(RequestsText(Json::parse(R"({"requests":[7,"x"],"left_out":"much"})")), "");
  EXPECT_EQ(RequestsText(Json::parse(R"({"requests":7})")), "");
}

TEST(ModelsTextTest, ALinePerRequestAndHowManyMore) {
  const std::string text = RequestsText(Json::parse(
      R"({"requests":[{"id":"cmpl-1","model":"small","age_us":1200000,"why":"waits for memory"}],
          "left_out":3})"));
  EXPECT_EQ(text, "cmpl-1 (small, for 1.2 s) waits for memory\nand 3 requests that came later\n");
}

}  // namespace
}  // namespace cli
