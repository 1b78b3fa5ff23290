#include "functions/serving/frames.h"

#include <gtest/gtest.h>

#include <cstring>

namespace functions {
namespace {

std::span<const std::byte> BodyOf(const Bytes& frame) { return std::span(frame).subspan(4); }

TEST(FramesTest, ARequestIsReadBack) {
  const Bytes data(8, std::byte{5});
  Request request;
  request.tensors.push_back({{"x", ElementType::kF32, {1, 2}}, data});
  const Bytes frame = EncodeRequest(request);
  Request read;
  ASSERT_TRUE(DecodeRequestUntrusted(BodyOf(frame), &read));
  ASSERT_EQ(read.tensors.size(), 1u);
  EXPECT_EQ(read.tensors[0].type, request.tensors[0].type);
  EXPECT_EQ(Bytes(read.tensors[0].bytes.begin(), read.tensors[0].bytes.end()), data);
  for (size_t bytes = 0; bytes + 4 < frame.size(); ++bytes)
    EXPECT_FALSE(DecodeRequestUntrusted(BodyOf(frame).first(bytes), &read)) << bytes;
}

TEST(FramesTest, BytesMustBeThoseOfTheShape) {
  const Bytes data(8, std::byte{5});
  Request request;
  request.tensors.push_back({{"x", ElementType::kF32, {3}}, data});
  Request read;
  EXPECT_FALSE(DecodeRequestUntrusted(BodyOf(EncodeRequest(request)), &read));
}

TEST(FramesTest, ASentenceIsReadBack) {
  Answer read;
  const Bytes frame = EncodeAnswer({AnswerStatus::kRefused, {}, "no room"});
  ASSERT_TRUE(DecodeAnswerUntrusted(BodyOf(frame), &read));
  EXPECT_EQ(read.status, AnswerStatus::kRefused);
  EXPECT_EQ(read.sentence, "no room");
}

TEST(FramesTest, FramesAreCollectedFromPieces) {
  const Bytes first = EncodeAnswer({AnswerStatus::kRefused, {}, "one"});
  const Bytes second = EncodeAnswer({AnswerStatus::kRefused, {}, "two"});
  Bytes both = first;
  both.insert(both.end(), second.begin(), second.end());
  FrameReader reader;
  std::span<const std::byte> body;
  std::vector<Bytes> whole;
  for (const std::byte one : both) {
    ASSERT_TRUE(reader.AddUntrusted({&one, 1}));
    if (reader.Peek(&body)) whole.push_back(reader.Take());
  }
  EXPECT_EQ(whole, (std::vector<Bytes>{first, second}));
  EXPECT_EQ(reader.buffered(), 0u);
}

TEST(FramesTest, AFrameThatIsTooLongIsRefusedAtItsFirstBytes) {
  const Bytes announced(4, std::byte{0xff});
  FrameReader reader;
  EXPECT_FALSE(reader.AddUntrusted(announced));
}

}  // namespace
}  // namespace functions
