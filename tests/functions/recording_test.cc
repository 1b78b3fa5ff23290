#include "functions/recording.h"

#include <gtest/gtest.h>

#include <cstring>

#include "functions/body_layout.h"
#include "ipc/calls.h"
#include "ipc/calls/limits.h"

namespace functions {
namespace {

constexpr uint64_t kMemory = ipc::limits::kSlotBase;

// A launch as the client encodes it: the fixed part, then the parameters at a multiple of 8.
Call LaunchOf(const std::vector<uint64_t>& parameters, uint32_t grid = 1) {
  const std::vector<BodyField> fields = FixedFieldsOf(ipc::Op::Launch);
  const size_t fixed = fields.back().offset + fields.back().bytes;
  Call call{static_cast<uint16_t>(ipc::Op::Launch), Bytes((fixed + 7) / 8 * 8)};
  const uint32_t bytes = static_cast<uint32_t>(parameters.size() * sizeof(uint64_t));
  std::memcpy(call.body.data() + fields[1].offset, &grid, sizeof grid);
  std::memcpy(call.body.data() + fields.back().offset, &bytes, sizeof bytes);
  const std::byte* const from = reinterpret_cast<const std::byte*>(parameters.data());
  call.body.insert(call.body.end(), from, from + bytes);
  return call;
}

RecordedCall Upload(uint64_t address, size_t bytes) {
  return {StepKind::kUpload, {}, address, Bytes(bytes, std::byte{1})};
}
RecordedCall Download(uint64_t address, size_t bytes) {
  return {StepKind::kDownload, {}, address, Bytes(bytes, std::byte{2})};
}
RecordedCall Launch(const std::vector<uint64_t>& parameters, uint32_t grid = 1) {
  return {StepKind::kCall, LaunchOf(parameters, grid), 0, {}};
}

RecordedIteration Iteration(const std::vector<uint64_t>& parameters) {
  return {{Upload(kMemory, 16), Launch(parameters), Download(kMemory + 4096, 8)}};
}

Recording Of(std::vector<RecordedIteration> iterations) {
  Recording recording;
  recording.blocks.push_back({kMemory, 64, Bytes(64), 0});
  recording.blocks.push_back({kMemory + 4096, 64, Bytes(64), 0});
  recording.blocks.push_back({kMemory + 8192, 64, Bytes(64), 0});
  recording.iterations = std::move(iterations);
  return recording;
}

std::string WhyNoFunction(Recording recording) {
  Function function;
  std::string why;
  return MakeFunction(std::move(recording), &function, &why) ? "" : why;
}

TEST(RecordingTest, LikeIterationsAreAFunctionWithASampleEach) {
  Function function;
  std::string why;
  ASSERT_TRUE(MakeFunction(Of({Iteration({kMemory, 5}), Iteration({kMemory, 5})}), &function, &why))
      << why;
  EXPECT_EQ(function.inputs.size(), 1u);
  EXPECT_EQ(function.inputs[0].bytes, 16u);
  EXPECT_EQ(function.outputs[0].address, kMemory + 4096);
  EXPECT_EQ(function.steps.size(), 3u);
  EXPECT_EQ(function.samples.size(), 2u);
  EXPECT_TRUE(function.scalars.empty());
}

TEST(RecordingTest, ParametersThatDifferAreScalars) {
  Function function;
  std::string why;
  ASSERT_TRUE(MakeFunction(Of({Iteration({kMemory, 5, 1ull << 40}), Iteration({kMemory, 6, 3})}),
                           &function, &why))
      << why;
  // The second differs in its low half, the third in both.
  ASSERT_EQ(function.scalars.size(), 2u);
  EXPECT_EQ(function.scalars[0].bytes, 4u);
  EXPECT_EQ(function.scalars[1].bytes, 8u);
  EXPECT_EQ(function.scalars[0].step, 1u);
  ASSERT_EQ(function.samples[1].inputs.size(), 3u);
  uint32_t value = 0;
  std::memcpy(&value, function.samples[1].inputs[1].data(), sizeof value);
  EXPECT_EQ(value, 6u);
}

TEST(RecordingTest, AddressesMayDiffer) {
  EXPECT_EQ(WhyNoFunction(Of({Iteration({kMemory, 5}), Iteration({kMemory + 8192, 5})})), "");
  EXPECT_NE(WhyNoFunction(Of({Iteration({kMemory, 5}), Iteration({0, 5})})), "");
}

TEST(RecordingTest, WhatNoFunctionCanDoIsRefused) {
  const RecordedIteration plain = Iteration({kMemory, 5});
  RecordedIteration other = plain;
  other.calls[1] = Launch({kMemory, 5}, 2);
  EXPECT_NE(WhyNoFunction(Of({plain, other})).find("Launch"), std::string::npos);
  other = plain;
  other.calls.pop_back();
  EXPECT_NE(WhyNoFunction(Of({plain, other})), "");
  other = plain;
  other.calls[0] = Upload(kMemory, 12);
  EXPECT_NE(WhyNoFunction(Of({plain, other})).find("different sizes"), std::string::npos);
  other = plain;
  other.calls.push_back(Upload(kMemory, 16));
  EXPECT_NE(WhyNoFunction(Of({other, other})).find("in the middle"), std::string::npos);
  other.calls = {plain.calls[0], plain.calls[1]};
  EXPECT_NE(WhyNoFunction(Of({other, other})).find("reads an output"), std::string::npos);
  other.calls = {plain.calls[1], plain.calls[2]};
  EXPECT_NE(WhyNoFunction(Of({other, other})).find("uploads an input"), std::string::npos);
}

// A boundary stands where the program repeats itself, and that may be anywhere in its loop.
TEST(RecordingTest, IterationsAreCutWhereRequestsBegin) {
  const RecordedIteration plain = Iteration({kMemory, 5});
  const auto turned = [&](size_t first, size_t requests) {
    RecordedIteration iteration;
    for (size_t i = 0; i < requests * plain.calls.size(); ++i)
      iteration.calls.push_back(plain.calls[(first + i) % plain.calls.size()]);
    return iteration;
  };
  for (size_t first = 0; first < plain.calls.size(); ++first) {
    for (size_t requests = 1; requests < 4; ++requests) {
      if (first == 0 && requests == 1) continue;
      Function function;
      std::string why;
      const RecordedIteration one = turned(first, requests);
      ASSERT_TRUE(MakeFunction(Of({one, one, one}), &function, &why)) << first << ": " << why;
      ASSERT_EQ(function.steps.size(), 3u);
      EXPECT_EQ(function.steps[0].kind, StepKind::kUpload);
      EXPECT_EQ(function.steps[2].kind, StepKind::kDownload);
      EXPECT_EQ(function.samples.size(), first == 0 || requests > 1 ? 3u : 2u);
    }
  }
}

TEST(RecordingTest, RequestsMayHaveSeveralInputs) {
  RecordedIteration iteration = Iteration({kMemory, 5});
  iteration.calls.insert(iteration.calls.begin(), Upload(kMemory + 8192, 16));
  iteration.calls.insert(iteration.calls.begin(), Download(kMemory + 4096, 8));
  iteration.calls.pop_back();
  Function function;
  std::string why;
  ASSERT_TRUE(MakeFunction(Of({iteration, iteration, iteration}), &function, &why)) << why;
  EXPECT_EQ(function.inputs.size(), 2u);
}

TEST(RecordingTest, RequestsThatDifferAreNotCutApart) {
  RecordedIteration two = Iteration({kMemory, 5});
  two.calls.push_back(Upload(kMemory, 12));
  two.calls.push_back(Launch({kMemory, 5}));
  two.calls.push_back(Download(kMemory + 4096, 8));
  EXPECT_NE(WhyNoFunction(Of({two, two, two})).find("in the middle"), std::string::npos);
}

TEST(RecordingTest, OnlyMemoryThatIsReachedIsKept) {
  Recording recording = Of({Iteration({kMemory, 5}), Iteration({kMemory, 5})});
  Function function;
  std::string why;
  ASSERT_TRUE(MakeFunction(recording, &function, &why));
  EXPECT_EQ(function.blocks.size(), 2u);
  // A word of a block that is used points into the third.
  const uint64_t pointer = kMemory + 8192 + 8;
  std::memcpy(recording.blocks[1].content.data() + 16, &pointer, sizeof pointer);
  ASSERT_TRUE(MakeFunction(recording, &function, &why));
  EXPECT_EQ(function.blocks.size(), 3u);
}

TEST(RecordingTest, MemoryThatOverlapsIsOneBlock) {
  Recording recording = Of({Iteration({kMemory, 5}), Iteration({kMemory, 5})});
  recording.blocks[0].content.assign(64, std::byte{7});
  recording.allocated.push_back({kMemory + 32, 64});
  recording.allocated.push_back({kMemory + 96, 32});  // touches, and is another
  Function function;
  std::string why;
  ASSERT_TRUE(MakeFunction(recording, &function, &why));
  ASSERT_EQ(function.blocks.size(), 2u);
  EXPECT_EQ(function.blocks[0].bytes, 96u);
  ASSERT_EQ(function.blocks[0].content.size(), 96u);
  EXPECT_EQ(function.blocks[0].content[63], std::byte{7});
  EXPECT_EQ(function.blocks[0].content[64], std::byte{0});
}

}  // namespace
}  // namespace functions
