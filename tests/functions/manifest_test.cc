#include "functions/manifest.h"

#include <gtest/gtest.h>

namespace functions {
namespace {

Function Signature() {
  Function function;
  function.inputs = {{0, 256}, {0, 3}};
  function.outputs = {{0, 40}};
  function.scalars = {{0, 0, 4}, {0, 8, 8}};
  return function;
}

std::string WhyNoManifest(const std::string& json) {
  Manifest manifest;
  std::string why;
  if (!ParseManifestUntrusted(json, &manifest, &why)) return why;
  return Fits(manifest, Signature(), &why) ? "" : why;
}

TEST(ManifestTest, TheFirstManifestFitsAndIsReadBack) {
  const Manifest first = FirstManifest(Signature());
  EXPECT_EQ(first.inputs.size(), 4u);
  EXPECT_EQ(TextOf(first.inputs[0]), "f32 [64]");
  EXPECT_EQ(TextOf(first.inputs[1]), "u8 [3]");
  EXPECT_EQ(first.inputs[3].type, ElementType::kI64);
  EXPECT_EQ(WhyNoManifest(JsonOf(first)), "");
  Manifest read;
  std::string why;
  ASSERT_TRUE(ParseManifestUntrusted(JsonOf(first), &read, &why));
  EXPECT_EQ(read, first);
}

TEST(ManifestTest, NamesTypesAndShapesMayBeEdited) {
  Manifest edited = FirstManifest(Signature());
  edited.inputs[0] = {"pixels", ElementType::kU8, {4, 64}};
  EXPECT_EQ(WhyNoManifest(JsonOf(edited)), "");
}

TEST(ManifestTest, WhatDoesNotFitIsNamed) {
  Manifest edited = FirstManifest(Signature());
  edited.inputs[0].shape = {63};
  EXPECT_NE(WhyNoManifest(JsonOf(edited)).find("input0 is f32 [63], but it has 256 bytes"),
            std::string::npos);
  edited = FirstManifest(Signature());
  edited.outputs.clear();
  EXPECT_NE(WhyNoManifest(JsonOf(edited)).find("0 outputs, but the function has 1"),
            std::string::npos);
  edited = FirstManifest(Signature());
  edited.inputs[1].name = "input0";
  EXPECT_NE(WhyNoManifest(JsonOf(edited)).find("two inputs input0"), std::string::npos);
  edited.inputs[1].name = "a b";
  EXPECT_NE(WhyNoManifest(JsonOf(edited)), "");
  edited = FirstManifest(Signature());
  edited.inputs[0].shape = {uint64_t{1} << 63, 2};
  EXPECT_NE(WhyNoManifest(JsonOf(edited)), "");
}

TEST(ManifestTest, WhatIsNoManifestIsRefused) {
  for (const char* const text : {"", "{", "[]", "{}", R"({"inputs": 1, "outputs": []})",
                                 R"({"inputs": [{}], "outputs": []})",
                                 R"({"inputs": [{"name": "a", "type": "f31", "shape": []}]})",
                                 R"({"inputs": [{"name": "a", "type": "f32", "shape": [-1]}]})"})
    EXPECT_NE(WhyNoManifest(text), "") << text;
}

}  // namespace
}  // namespace functions
