// What the client packed into a fill or a copy is read again as a graph's node has it.
#include "daemon/worker/device_write.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "ipc/calls.h"
#include "ipc/codec_client.h"
#include "ipc/message.h"
#include "tests/ipc/calls/fakes.h"

namespace worker {
namespace {

constexpr CUdeviceptr kTo = ipc::kArena + 2000, kFrom = ipc::kArena + 3000;

// A client that sends what is not its own.
class AnyCaller final : public ipc::FakeCaller {
 public:
  bool Accepts(uint64_t, uint64_t) override { return true; }
};

template <ipc::Op op, class... A>
std::optional<DeviceWrite> Read(A... args) {
  const ipc::Arguments<op> arguments(args...);
  const size_t bytes_max = ipc::RequestBytesMax(op, arguments.values());
  std::vector<std::byte> message(sizeof(ipc::MessageHeader) + bytes_max);
  ipc::Writer writer(std::span<std::byte>(message).subspan(sizeof(ipc::MessageHeader)));
  AnyCaller caller;
  EXPECT_EQ(ipc::EncodeRequest(op, arguments.values(), caller, &writer).refusal,
            ipc::Refusal::kNone);
  ipc::MessageHeader header;
  header.op = static_cast<uint16_t>(op);
  header.bytes = static_cast<uint32_t>(sizeof header + writer.size());
  std::memcpy(message.data(), &header, sizeof header);
  message.resize(header.bytes);
  ipc::FakeSession door;
  return ReadDeviceWriteUntrusted(message, door);
}

std::optional<DeviceWrite> Copy(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                uint64_t sequence = 0) {
  return Read<ipc::Op::CopyDevice>(to, from, bytes, CUstream{}, ipc::Mark{.sequence = sequence});
}

TEST(DeviceWriteTest, FillsHaveTheirElements) {
  const std::optional<DeviceWrite> fill = Read<ipc::Op::cuMemsetD16Async>(
      kTo, static_cast<unsigned short>(0xabcd), size_t{30}, CUstream{});
  ASSERT_TRUE(fill.has_value());
  EXPECT_FALSE(fill->IsCopy());
  EXPECT_EQ(fill->to, kTo);
  EXPECT_EQ(fill->value, 0xabcdu);
  EXPECT_EQ(fill->elements, 30u);
  EXPECT_EQ(fill->bytes(), 60u);
}

TEST(DeviceWriteTest, ACopyHasBothPlaces) {
  const std::optional<DeviceWrite> copy = Copy(kTo, kFrom, 64);
  ASSERT_TRUE(copy.has_value());
  EXPECT_TRUE(copy->IsCopy());
  EXPECT_EQ(copy->to, kTo);
  EXPECT_EQ(copy->from, kFrom);
  EXPECT_EQ(copy->bytes(), 64u);
}

TEST(DeviceWriteTest, ACopyOfTheDriversHasBothPlaces) {
  const std::optional<DeviceWrite> copy =
      Read<ipc::Op::cuMemcpyDtoDAsync_v2>(kTo, kFrom, size_t{64}, CUstream{});
  ASSERT_TRUE(copy.has_value());
  EXPECT_TRUE(copy->IsCopy());
  EXPECT_EQ(copy->to, kTo);
  EXPECT_EQ(copy->from, kFrom);
  EXPECT_EQ(copy->bytes(), 64u);
}

TEST(DeviceWriteTest, WhatIsNoNodeIsNotRead) {
  EXPECT_FALSE(Copy(kTo, kFrom, 64, 5).has_value()) << "the client waits for its mark";
  EXPECT_FALSE(Copy(kTo, kFrom, 0).has_value()) << "nothing is copied";
  EXPECT_FALSE(Copy(kTo, 10, 64).has_value()) << "it is not the session's";
}

TEST(DeviceWriteTest, OtherCallsAreNone) {
  EXPECT_TRUE(IsDeviceWriteUntrusted(static_cast<uint16_t>(ipc::Op::cuMemsetD8Async)));
  EXPECT_TRUE(IsDeviceWriteUntrusted(static_cast<uint16_t>(ipc::Op::cuMemcpyDtoDAsync_v2)));
  EXPECT_FALSE(IsDeviceWriteUntrusted(static_cast<uint16_t>(ipc::Op::Launch)));
  EXPECT_FALSE(IsDeviceWriteUntrusted(static_cast<uint16_t>(ipc::Op::CopyStagedOut)));
  EXPECT_FALSE(IsDeviceWriteUntrusted(0xffff));
}

}  // namespace
}  // namespace worker
