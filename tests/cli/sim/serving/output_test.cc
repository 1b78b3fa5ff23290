#include "cli/sim/serving/output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sim::serving {
namespace {

Served OneRun() {
  Served run;
  run.mode = "orca";
  run.token_ms = {10, 30, 20};
  run.first_ms = {1, 2, 3};
  run.refused = 4;
  run.seconds = 6;
  return run;
}

TEST(ServingOutputTest, TextJsonAndHtmlSayTheSame) {
  EXPECT_NE(
      ServedText({OneRun()}).find("orca                       3        4     0.500         20.0"),
      std::string::npos)
      << ServedText({OneRun()});
  const nlohmann::json json = nlohmann::json::parse(ServedJson({OneRun()}));
  EXPECT_EQ(json["batchings"][0]["per_s"], 0.5);
  EXPECT_EQ(json["batchings"][0]["token_ms_p99"], 30);
  const std::string html = ServedHtml("a title", {OneRun()});
  EXPECT_NE(html.find("a title"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
}

}  // namespace
}  // namespace sim::serving
