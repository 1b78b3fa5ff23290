#include "functions/function_file.h"

#include <gtest/gtest.h>

#include "ipc/calls.h"

namespace functions {
namespace {

Bytes Text(const char* text) {
  const std::byte* const from = reinterpret_cast<const std::byte*>(text);
  return Bytes(from, from + std::string(text).size());
}

Function Example() {
  Function function;
  function.images.push_back({{1, 2, 3, 4}, Text("module")});
  function.setup.push_back({static_cast<uint16_t>(ipc::Op::LoadModule), Text("load")});
  function.blocks.push_back({4096, 6, Text("memory"), 0});
  function.blocks.push_back({8192, 6, {}, 1});
  function.steps.push_back({StepKind::kUpload, 0, {}});
  function.steps.push_back({StepKind::kCall, 0, {1, Text("parameters")}});
  function.steps.push_back({StepKind::kDownload, 0, {}});
  function.inputs.push_back({4096, 2});
  function.outputs.push_back({4098, 3});
  function.scalars.push_back({1, 4, 4});
  function.samples.push_back({{Text("in"), Text("four")}, {Text("out")}});
  return function;
}

std::string WhyNot(const Bytes& file) {
  Function function;
  std::string why;
  return DecodeFunctionUntrusted(file, &function, &why) ? "" : why;
}

TEST(FunctionFileTest, WhatIsReadIsWhatWasWritten) {
  const Bytes file = EncodeFunction(Example());
  Function read;
  std::string why;
  ASSERT_TRUE(DecodeFunctionUntrusted(file, &read, &why)) << why;
  EXPECT_EQ(EncodeFunction(read), file);
  EXPECT_EQ(read.images[0].bytes, Text("module"));
  EXPECT_EQ(read.blocks[1].variable, 1u);
  EXPECT_EQ(read.scalars, Example().scalars);
  EXPECT_EQ(read.samples[0].inputs, Example().samples[0].inputs);
}

TEST(FunctionFileTest, AFileCutAnywhereIsRefused) {
  const Bytes file = EncodeFunction(Example());
  for (size_t bytes = 0; bytes < file.size(); ++bytes) {
    EXPECT_NE(WhyNot(Bytes(file.begin(), file.begin() + static_cast<ptrdiff_t>(bytes))), "")
        << bytes;
  }
}

TEST(FunctionFileTest, EachDamagedByteIsFound) {
  const Bytes file = EncodeFunction(Example());
  for (size_t at = 0; at < file.size(); ++at) {
    Bytes damaged = file;
    damaged[at] ^= std::byte{0x10};
    EXPECT_NE(WhyNot(damaged), "") << at;
  }
}

TEST(FunctionFileTest, AnotherVersionIsNamed) {
  Bytes file = EncodeFunction(Example());
  file[8] = std::byte{2};
  EXPECT_NE(WhyNot(file).find("another version"), std::string::npos);
}

// Written with a checksum that is right, so only the checks of the content can refuse.
TEST(FunctionFileTest, NumbersThatNameNothingAreRefused) {
  Function function = Example();
  function.steps[0].port = 1;
  EXPECT_NE(WhyNot(EncodeFunction(function)), "");
  function = Example();
  function.scalars[0].step = 3;
  EXPECT_NE(WhyNot(EncodeFunction(function)), "");
  function = Example();
  function.scalars[0].offset = 7;  // ten bytes are there
  EXPECT_NE(WhyNot(EncodeFunction(function)), "");
  function = Example();
  function.samples[0].outputs[0] = Text("longer");
  EXPECT_NE(WhyNot(EncodeFunction(function)), "");
  function = Example();
  function.blocks[0].content = Text("short");
  EXPECT_NE(WhyNot(EncodeFunction(function)), "");
  function = Example();
  function.blocks[1].variable = 2;
  EXPECT_NE(WhyNot(EncodeFunction(function)), "");
}

}  // namespace
}  // namespace functions
