#include "cli/kernels.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cli {
namespace {

const replay::KernelReport kKernel = {
    .name = "_Z4copyPfPKf",
    .touches = {
        {.name = "parameter 0", .uses = {"writes"}, .escapes = true, .ranges = {"a", "b", "c"}},
        {.name = "parameter 1", .offset = 8, .uses = {"reads", "updates"}}}};

TEST(KernelsTest, ALineForEachThatIsTouched) {
  EXPECT_EQ(KernelText(kKernel),
            "copy(float*, float const*)\n"
            "  parameter 0  writes, stores the address  a; b; 1 more\n"
            "  parameter 1  reads, updates              anywhere in the allocation\n");
}

TEST(KernelsTest, AKernelThatIsNotKnownSaysWhy) {
  EXPECT_EQ(KernelText({.name = "k\n\x1b[2J", .reason = "a call of vprintf in line 3"}),
            "k??[2J\n  not known: a call of vprintf in line 3\n");
  EXPECT_EQ(KernelText({.name = "k"}), "k\n  touches no global memory\n");
}

TEST(KernelsTest, JsonSaysTheSame) {
  const nlohmann::json json = nlohmann::json::parse(
      KernelsJson({.kernels = {kKernel, {.name = "u\xff", .reason = "why"}}, .machine_code = 2}));
  EXPECT_EQ(json["machine_code_images"], 2);
  EXPECT_EQ(json["kernels"][0]["touches"][0]["ranges"].size(), 3u);
  EXPECT_FALSE(json["kernels"][0]["touches"][1].contains("ranges"));
  EXPECT_EQ(json["kernels"][0]["touches"][1]["offset"], 8);
  EXPECT_EQ(json["kernels"][1]["reason"], "why");
}

}  // namespace
}  // namespace cli
