#include "cli/kernels_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cli {
namespace {

const replay::KernelReport kKernel = {
    .name = "_Z4copyPfPKf",
    .touches = {
        {.name = "parameter 0", .uses = {"writes"}, .escapes = true, .ranges = {"a", "b", "c"}},
        {.name = "parameter 1", .offset = 8, .uses = {"reads", "updates"}}}};

TEST(KernelsTextTest, ALineForEachThatIsTouched) {
  EXPECT_EQ(KernelText(kKernel),
            "copy(float*, float const*)\n"
            "  parameter 0  writes, stores the address  a; b; 1 more\n"
            "  parameter 1  reads, updates              anywhere in the allocation\n");
}

TEST(KernelsTextTest, AKernelThatIsNotKnownSaysWhy) {
  EXPECT_EQ(KernelText({.name = "k\n\x1b[2J", .reason = "a call of vprintf in line 3"}),
            "k??[2J\n  not known: a call of vprintf in line 3\n");
  EXPECT_EQ(KernelText({.name = "k"}), "k\n  touches no global memory\n");
}

TEST(KernelsTextTest, JsonSaysTheSame) {
  const nlohmann::json json = nlohmann::json::parse(KernelsJson(
      {.file = {.kernels = {kKernel, {.name = "u\xff", .reason = "why"}}, .machine_code = 2}}));
  EXPECT_FALSE(json.contains("launches") || json["kernels"][0].contains("launches"));
  EXPECT_EQ(json["machine_code_images"], 2);
  EXPECT_EQ(json["kernels"][0]["touches"][0]["ranges"].size(), 3u);
  EXPECT_FALSE(json["kernels"][0]["touches"][1].contains("ranges"));
  EXPECT_EQ(json["kernels"][0]["touches"][1]["offset"], 8);
  EXPECT_EQ(json["kernels"][1]["reason"], "why");
}

// Two modules with kernels of one name, as frameworks compile them.
std::string Module(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n" +
         body + "  ret;\n}\n";
}

graph::Image Whole(const std::string& bytes) {
  return {.bytes = bytes, .total_bytes = bytes.size(), .complete = true};
}

TEST(KernelsTextTest, LaunchesAreOfTheKernelOfTheirImageAndTheLongestComesFirst) {
  const std::string unknown =
      "  .reg .b64 %rd<3>;\n  ld.param.u64 %rd1, [p];\n  ld.global.u64 %rd2, [%rd1];\n"
      "  st.global.u64 [%rd2], %rd1;\n";
  const graph::Images images = {{{1}, Whole(Module(""))}, {{2}, Whole(Module(unknown))}};
  const graph::LaunchesByKernel launches = {
      {{{1}, "k"}, {3, 100}}, {{{2}, "k"}, {4, 500}}, {{{7}, "gone"}, {2, 50}}};
  KernelsShown shown = KernelsOf(images, launches, true);
  shown.counted_ns = 2'000'000'000;
  ASSERT_EQ(shown.file.kernels.size(), 2u);
  EXPECT_FALSE(shown.file.kernels[0].reason.empty());
  EXPECT_EQ((*shown.launches)[0].count, 4u);
  EXPECT_EQ((*shown.launches)[1].count, 3u);
  EXPECT_EQ(KnownText(shown), "known: 1 of 2 kernels, 3 of 9 launches in 2.0 s");
  EXPECT_EQ(KernelText(shown.file.kernels[1], &(*shown.launches)[1]),
            "k  3 launches, 0.1 us of the device\n  touches no global memory\n");
  const nlohmann::json json = nlohmann::json::parse(KernelsJson(shown));
  EXPECT_EQ(json["launches"], 9);
  EXPECT_EQ(json["known_launches"], 3);
  EXPECT_EQ(json["kernels"][0]["launches"], 4);
  EXPECT_EQ(json["kernels"][0]["device_ns"], 500);
}

TEST(KernelsTextTest, WithoutCountsKernelsKeepTheOrderOfTheirImages) {
  const KernelsShown shown = KernelsOf({{{1}, Whole(Module(""))}, {{2}, {}}}, {}, false);
  EXPECT_FALSE(shown.launches.has_value());
  EXPECT_EQ(KnownText(shown), "known: 1 of 1 kernels");
}

}  // namespace
}  // namespace cli
