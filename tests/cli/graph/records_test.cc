#include "cli/graph/records.h"

#include <gtest/gtest.h>

#include <cstring>

#include "cli/graph/iteration.h"
#include "ipc/call_trace.h"
#include "tests/cli/graph/record_bytes.h"

namespace graph {
namespace {

std::vector<Record> Decoded(const std::string& bytes, uint64_t unreadable_expected = 0) {
  std::vector<Record> records;
  uint64_t unreadable = 0;
  EXPECT_EQ(DecodeRecordsUntrusted(bytes, &records, &unreadable), bytes.size());
  EXPECT_EQ(unreadable, unreadable_expected);
  return records;
}

TEST(RecordsTest, ALaunchIsReadAsItWasWritten) {
  LaunchParts parts;
  parts.kernel = "_Z4copyPfPKf";
  parts.ranges = {{0x1000, 256}, {0x2000, 512}};
  parts.variables = {{"counter", {0x9000, 4}}};
  parts.parameters = std::string("\0\x10\0\0\0\0\0\0\x05", 9);
  const std::vector<Record> records = Decoded(LaunchBytes(7, 123, parts));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].number, 7u);
  const SentCall& call = std::get<SentCall>(records[0].what);
  EXPECT_EQ(call.op, ipc::Op::Launch);
  EXPECT_EQ(call.slot, 123u);
  EXPECT_EQ(call.kernel, parts.kernel);
  EXPECT_EQ(call.arguments[1], parts.blocks);
  EXPECT_EQ(call.image, parts.image);
  EXPECT_EQ(call.ranges, parts.ranges);
  ASSERT_EQ(call.variables.size(), 1u);
  EXPECT_EQ(call.variables[0].first, "counter");
  EXPECT_EQ(call.parameters.size(), 9u);
  EXPECT_EQ(std::memcmp(call.parameters.data(), parts.parameters.data(), 9), 0);
}

TEST(RecordsTest, TheBeginningOfARecordWaitsForItsRest) {
  const std::string whole =
      WaitedBytes(1, {ipc::WaitedFor::kDevice, 2, 3}) + LaunchBytes(2, 5, {.kernel = "k"});
  std::vector<Record> records;
  std::string rest;
  uint64_t unreadable = 0;
  for (size_t at = 0; at < whole.size(); at += sizeof(ipc::TraceEvent)) {
    rest += whole.substr(at, sizeof(ipc::TraceEvent));
    rest.erase(0, DecodeRecordsUntrusted(rest, &records, &unreadable));
  }
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(unreadable, 0u);
  ASSERT_EQ(records.size(), 2u);
  const HostWait& wait = std::get<HostWait>(records[0].what);
  EXPECT_EQ(wait.what, ipc::WaitedFor::kDevice);
  EXPECT_EQ(wait.slot, 2u);
  EXPECT_EQ(wait.event, 3u);
}

TEST(RecordsTest, NonsenseIsCountedAndLeftOut) {
  EXPECT_EQ(Decoded(LaunchBytes(1, ipc::limits::kStreamsMax, {}), 1).size(), 0u);
  EXPECT_EQ(Decoded(LaunchBytes(1, 5, {.ranges = {{UINT64_MAX - 1, 4}}}), 1).size(), 0u);
  EXPECT_EQ(Decoded(LaunchBytes(1, 5, {.ranges = {{16, 0}}}), 1).size(), 0u);
  EXPECT_EQ(Decoded(LaunchBytes(2, 5, {}) + LaunchBytes(2, 5, {}), 1).size(), 1u) << "numbers grow";
  EXPECT_EQ(Decoded(WaitedBytes(1, {static_cast<ipc::WaitedFor>(3), 0, 0}), 1).size(), 0u);
  std::string launch = LaunchBytes(1, 5, {.kernel = "k"});
  ipc::SentHead head;
  std::memcpy(static_cast<void*>(&head), launch.data() + sizeof(ipc::TraceEvent), sizeof head);
  head.ranges = UINT32_MAX;  // of which there are none
  std::memcpy(launch.data() + sizeof(ipc::TraceEvent), &head, sizeof head);
  EXPECT_EQ(Decoded(launch, 1).size(), 0u);
}

TEST(RecordsTest, AnImageIsPutTogetherFromItsPartsInOrder) {
  Images images;
  uint64_t unreadable = 0;
  const ImageHash hash = {1, 2, 3, 4};
  const std::string bytes = ImageBytes(hash, 6, 0, "abcd") + ImageBytes(hash, 6, 5, "x") +
                            ImageBytes(hash, 6, 4, "ef") + ImageBytes({9, 9, 9, 9}, 0, 0, "");
  EXPECT_EQ(DecodeImagesUntrusted(bytes, &images, &unreadable), bytes.size());
  EXPECT_EQ(unreadable, 1u) << "the part out of order";
  EXPECT_EQ(images[hash].bytes, "abcdef");
  EXPECT_TRUE(images[hash].complete);
  const Image& gone = images[{9, 9, 9, 9}];
  EXPECT_TRUE(gone.complete && gone.bytes.empty());
  EXPECT_FALSE(images.contains(kAllTold));
  DecodeImagesUntrusted(ImageBytes(kAllTold, 0, 0, ""), &images, &unreadable);
  EXPECT_TRUE(images.contains(kAllTold));
}

Record At(uint32_t number, bool begins) {
  SentCall call;
  call.begins_iteration = begins;
  return {.number = number, .thread = 1, .what = call};
}

TEST(FirstWholeIterationTest, LiesBetweenTwoBoundaries) {
  const std::vector<Record> records = {At(4, false), At(5, true), At(6, false),
                                       At(7, false), At(8, true), At(9, false)};
  const std::span<const Record> whole = FirstWholeIteration(records);
  ASSERT_EQ(whole.size(), 3u);
  EXPECT_EQ(whole[0].number, 5u);
  EXPECT_EQ(whole[2].number, 7u);
  EXPECT_TRUE(FirstWholeIteration(std::span(records).first(4)).empty()) << "its end is to come";
}

TEST(FirstWholeIterationTest, HasNoGap) {
  const std::vector<Record> records = {At(1, true), At(2, false), At(4, false),
                                       At(5, true), At(6, false), At(7, true)};
  const std::span<const Record> whole = FirstWholeIteration(records);
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].number, 5u) << "record 3 was lost";
  const std::vector<Record> before_boundary = {At(1, true), At(2, false), At(4, true),
                                               At(5, false)};
  EXPECT_TRUE(FirstWholeIteration(before_boundary).empty());
}

}  // namespace
}  // namespace graph
