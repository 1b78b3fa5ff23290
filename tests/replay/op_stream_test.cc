#include "replay/op_stream.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ipc/calls/limits.h"
#include "replay/op_stream_codec.h"

namespace replay {
namespace {

constexpr uint64_t kBase = ipc::limits::kSlotBase;

template <class T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

struct ScaleArguments {
  LaunchShape shape;
  uint64_t data = 0;
  float factor = 0;
  uint32_t count = 0;
};

class OpStreamTest : public ::testing::Test {
 protected:
  OpStreamTest() {
    const Field parameters[] = {{0, 8}, {8, 4}, {12, 4}};
    scale_ = *callees_.Intern(KernelCallee({1, 2, 3, 4}, "scale", parameters, 16));
    copy_ = *callees_.Intern(CalleeOf(OpKind::kCopy));
    record_ = *callees_.Intern(CalleeOf(OpKind::kEventRecord));
  }
  // A copy, two launches and a record, of which the second launch follows a wait.
  OpStream Some() const {
    OpStream ops;
    const CopyArguments copy = {kBase + 4096, 0, kBase + ipc::limits::kEphemeralOffset, 0, 100, 1};
    const ScaleArguments scale = {{}, kBase + 64, 0.5f, 25};
    EXPECT_TRUE(ops.Add({{copy_, 3, false}, BytesOf(copy)}));
    EXPECT_TRUE(ops.Add({{scale_, 3, false}, BytesOf(scale)}));
    EXPECT_TRUE(ops.Add({{scale_, 4, true}, BytesOf(scale)}));
    EXPECT_TRUE(ops.Add({{record_, 4, false}, BytesOf(EventArguments{9, 0})}));
    return ops;
  }
  static bool Accepts(std::span<const std::byte> bytes) {
    Callees callees;
    return DecodeOpsUntrusted(bytes, Slot(kBase), &callees).has_value();
  }

  Callees callees_;
  uint32_t scale_ = 0, copy_ = 0, record_ = 0;
};

TEST_F(OpStreamTest, KeepsEveryByteInOrder) {
  const OpStream ops = Some();
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(ops.key(2), (OpKey{scale_, 4, true}));
  EXPECT_EQ(ops.at(0).arguments.size(), sizeof(CopyArguments));
  ScaleArguments scale;
  ASSERT_EQ(ops.at(1).arguments.size(), sizeof scale);
  std::memcpy(&scale, ops.at(1).arguments.data(), sizeof scale);
  EXPECT_EQ(scale.data, kBase + 64);
  EXPECT_EQ(scale.factor, 0.5f);
  EXPECT_EQ(ops.at(3).arguments.size(), sizeof(EventArguments));
}

TEST_F(OpStreamTest, ASliceIsThoseOperations) {
  const OpStream slice = Some().Slice(1, 3);
  ASSERT_EQ(slice.size(), 2u);
  EXPECT_EQ(slice.key(0), Some().key(1));
  EXPECT_EQ(slice.argument_bytes(), 2 * sizeof(ScaleArguments));
  EXPECT_EQ(Some().Slice(2, 2), OpStream());
}

TEST_F(OpStreamTest, IsBoundedByOperationsAndByBytes) {
  OpStream ops;
  const EventArguments record;
  for (unsigned i = 0; i < ipc::limits::kRecordedOpsMax; ++i) {
    ASSERT_TRUE(ops.Add({{record_, 1, false}, BytesOf(record)}));
  }
  EXPECT_FALSE(ops.Add({{record_, 1, false}, BytesOf(record)}));
  EXPECT_EQ(ops.size(), ipc::limits::kRecordedOpsMax);

  OpStream large;
  const std::vector<std::byte> arguments(1u << 14);
  for (unsigned i = 0; i < ipc::limits::kRecordedBytesMax / arguments.size(); ++i) {
    ASSERT_TRUE(large.Add({{scale_, 1, false}, arguments}));
  }
  EXPECT_FALSE(large.Add({{record_, 1, false}, BytesOf(record)}));
}

TEST_F(OpStreamTest, DecodesWhatItEncodes) {
  const std::vector<std::byte> bytes = EncodeOps(Some(), callees_, Slot(kBase));
  Callees callees;
  const std::optional<OpStream> ops = DecodeOpsUntrusted(bytes, Slot(kBase), &callees);
  ASSERT_TRUE(ops.has_value());
  EXPECT_EQ(EncodeOps(*ops, callees, Slot(kBase)), bytes);
  EXPECT_EQ(*DecodeOpsUntrusted(bytes, Slot(kBase), &callees_), Some());
  ASSERT_EQ(callees.size(), 3u);
  EXPECT_EQ(callees.at(1), callees_.at(scale_));
}

// Callees of other iterations, and their numbers, leave no trace.
TEST_F(OpStreamTest, TheEncodingTellsOfTheStreamAlone) {
  Callees others;
  others.Intern(CalleeOf(OpKind::kFill));
  const std::vector<std::byte> bytes = EncodeOps(Some(), callees_, Slot(kBase));
  const std::optional<OpStream> ops = DecodeOpsUntrusted(bytes, Slot(kBase), &others);
  ASSERT_TRUE(ops.has_value());
  EXPECT_EQ(EncodeOps(*ops, others, Slot(kBase)), bytes);
}

TEST_F(OpStreamTest, AddressesMoveToAnotherSlotAndNumbersDoNot) {
  const uint64_t other = kBase + ipc::limits::kSlotBytes;
  const std::vector<std::byte> bytes = EncodeOps(Some(), callees_, Slot(kBase));
  const std::optional<OpStream> ops = DecodeOpsUntrusted(bytes, Slot(other), &callees_);
  ASSERT_TRUE(ops.has_value());
  CopyArguments copy;
  std::memcpy(&copy, ops->at(0).arguments.data(), sizeof copy);
  EXPECT_EQ(copy.to, other + 4096);
  EXPECT_EQ(copy.from, other + ipc::limits::kEphemeralOffset);
  EXPECT_EQ(copy.width, 100u);
  EXPECT_EQ(EncodeOps(*ops, callees_, Slot(other)), bytes);
}

TEST_F(OpStreamTest, RefusesEveryCutAndAnyByteMore) {
  std::vector<std::byte> bytes = EncodeOps(Some(), callees_, Slot(kBase));
  ASSERT_TRUE(Accepts(bytes));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Accepts(std::span(bytes).first(size))) << size;
  }
  bytes.push_back({});
  EXPECT_FALSE(Accepts(bytes));
}

TEST_F(OpStreamTest, RefusesASecondEncodingOfTheSameStream) {
  const std::vector<std::byte> bytes = EncodeOps(Some(), callees_, Slot(kBase));
  const size_t last = bytes.size() - sizeof(EventArguments) - 7;  // the last operation
  std::vector<std::byte> waited = bytes;
  waited[last + 6] = std::byte{2};
  EXPECT_FALSE(Accepts(waited));
  std::vector<std::byte> callee = bytes;  // another callee first: its operations come out of order
  callee[last] = std::byte{3};
  EXPECT_FALSE(Accepts(callee));
  std::vector<std::byte> unused(bytes.begin(), bytes.begin() + static_cast<long>(last));
  unused[12] = std::byte{3};  // operations: the last was all that used its callee
  EXPECT_FALSE(Accepts(unused));
}

TEST_F(OpStreamTest, RefusesANumberThatWouldBeAnAddress) {
  OpStream ops;
  const uint64_t other = kBase + ipc::limits::kSlotBytes;
  const CopyArguments copy = {kBase, 0, other + 8, 0, 1, 1};
  ASSERT_TRUE(ops.Add({{copy_, 0, false}, BytesOf(copy)}));
  const std::vector<std::byte> bytes = EncodeOps(ops, callees_, Slot(kBase));
  EXPECT_TRUE(DecodeOpsUntrusted(bytes, Slot(kBase), &callees_).has_value());
  EXPECT_FALSE(DecodeOpsUntrusted(bytes, Slot(other), &callees_).has_value());
}

}  // namespace
}  // namespace replay
