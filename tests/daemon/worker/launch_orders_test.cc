// An order is taken only when it makes sense, and holds only for the messages that it was proven
// of.
#include "daemon/worker/launch_orders.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "ipc/calls.h"
#include "ipc/calls/limits.h"
#include "ipc/message.h"
#include "tests/daemon/worker/launch_graphs.h"
#include "tests/harness/seed.h"

namespace worker {
namespace {

constexpr size_t kMessageBytes = 40;  // each: a header and words
constexpr unsigned kPlace = 64;
constexpr size_t kHeaderWords = sizeof(ipc::MessageHeader) / 4;

class LaunchOrdersTest : public testing::Test {
 protected:
  LaunchOrdersTest() : area_(ipc::limits::kChunkAreaBytes), orders_(area_, &scratch_) { Write(4); }

  void Write(uint32_t launches, ipc::Op op = ipc::Op::Launch) {
    messages_.assign(launches * kMessageBytes, std::byte{7});
    ipc::MessageHeader header;
    header.op = static_cast<uint16_t>(op);
    header.bytes = kMessageBytes;
    for (uint32_t i = 0; i < launches; ++i)
      std::memcpy(&messages_[i * kMessageBytes], &header, sizeof header);
    std::memcpy(&area_[kPlace], messages_.data(), messages_.size());
    read_.assign((messages_.size() / 4 + 31) / 32, 0);
  }
  CUresult Order(std::vector<uint32_t> edges, std::vector<uint32_t> patches = {},
                 unsigned place = kPlace) {
    return orders_.OrderLaunches(place, static_cast<unsigned>(messages_.size()), edges.data(),
                                 static_cast<unsigned>(edges.size()), read_.data(),
                                 static_cast<unsigned>(read_.size()), patches.data(),
                                 static_cast<unsigned>(patches.size()));
  }
  // Of the four launches that Write() has written.
  CUresult Rename(std::vector<uint32_t> renames, unsigned rename_bytes, unsigned place = kPlace) {
    std::memcpy(&area_[place], messages_.data(), messages_.size());
    return orders_.OrderRenamedLaunches(place, static_cast<unsigned>(messages_.size()), nullptr, 0,
                                        read_.data(), static_cast<unsigned>(read_.size()), nullptr,
                                        0, renames.data(), static_cast<unsigned>(renames.size()),
                                        rename_bytes);
  }
  std::vector<CUdeviceptr> AddressesAt(unsigned place) const {
    std::vector<CUdeviceptr> addresses;
    const LaunchOrders::Order* const order = orders_.Find(place, messages_);
    if (order == nullptr) return addresses;
    for (const RenamedParameter& rename : order->renames) addresses.push_back(rename.address);
    return addresses;
  }
  bool Holds() const { return orders_.Find(kPlace, messages_) != nullptr; }
  void Change(size_t word) { messages_[word * 4] ^= std::byte{1}; }

  std::vector<std::byte> area_, messages_;
  std::vector<uint32_t> read_;
  FakeScratch scratch_;
  LaunchOrders orders_;
};

TEST_F(LaunchOrdersTest, AnOrderHoldsWhereItWasProven) {
  EXPECT_EQ(Order({0, 1, 1, 3}), CUDA_SUCCESS);
  EXPECT_TRUE(Holds());
  EXPECT_EQ(orders_.Find(kPlace, messages_)->edges, (std::vector<uint32_t>{0, 1, 1, 3}));
  EXPECT_EQ(orders_.Find(kPlace + 8, messages_), nullptr);
  EXPECT_EQ(orders_.Find(kPlace, std::span(messages_).first(3 * kMessageBytes)), nullptr);
  messages_.resize(messages_.size() + 80);
  EXPECT_TRUE(Holds()) << "more may follow";
}

TEST_F(LaunchOrdersTest, OrdersAreBoundedByTheirBytes) {
  std::vector<uint32_t> edges;
  while (edges.size() < 10'000) edges.insert(edges.end(), {0, 1});
  const auto fill = [&] {
    for (unsigned place = kPlace; place < kPlace + 4096 * 8; place += 8) {
      std::memcpy(&area_[place], messages_.data(), messages_.size());
      EXPECT_EQ(Order(edges, {}, place), CUDA_SUCCESS);
    }
    return orders_.size();
  };
  const size_t most = fill();
  EXPECT_LE(most * edges.size() * 4, LaunchOrders::kBytesMax);
  EXPECT_GT(most, 100u);
  EXPECT_EQ(fill(), most) << "what is there already is replaced";
  orders_.ForgetOrders();
  EXPECT_EQ(fill(), most);
}

TEST_F(LaunchOrdersTest, AWordThatWasReadMustBeTheSame) {
  read_[0] = 1u << (kHeaderWords + 1);
  EXPECT_EQ(Order({}), CUDA_SUCCESS);
  Change(kHeaderWords);
  EXPECT_TRUE(Holds());
  Change(kHeaderWords + 1);
  EXPECT_FALSE(Holds());
}

TEST_F(LaunchOrdersTest, HeadersAreAlwaysRead) {
  EXPECT_EQ(Order({}), CUDA_SUCCESS);
  Change(kMessageBytes / 4);
  EXPECT_FALSE(Holds());
}

TEST_F(LaunchOrdersTest, PatchesBelongToTheMessages) {
  read_.assign(read_.size(), ~0u);
  EXPECT_EQ(Order({}, {kHeaderWords, 42}), CUDA_SUCCESS);
  EXPECT_FALSE(Holds());
  const uint32_t value = 42;
  std::memcpy(&messages_[kHeaderWords * 4], &value, 4);
  EXPECT_TRUE(Holds());
}

TEST_F(LaunchOrdersTest, WhatTheAreaHoldsLaterDoesNotMatter) {
  read_.assign(read_.size(), ~0u);
  EXPECT_EQ(Order({}), CUDA_SUCCESS);
  std::memset(&area_[kPlace], 0, messages_.size());
  EXPECT_TRUE(Holds());
}

TEST_F(LaunchOrdersTest, WhatMakesNoSenseIsRefused) {
  EXPECT_EQ(Order({1, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Order({1, 1}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Order({0, 4}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Order({0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Order({}, {0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Order({}, {4 * kMessageBytes / 4, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Order({}, {}, kPlace + 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Order({}, {}, kPlace + 8), CUDA_ERROR_INVALID_VALUE) << "no message begins there";
  EXPECT_EQ(Order({}, {}, ipc::limits::kChunkAreaBytes - 8), CUDA_ERROR_INVALID_VALUE);
  read_.push_back(0);
  EXPECT_EQ(Order({}), CUDA_ERROR_INVALID_VALUE);
  Write(4, ipc::Op::StreamMark);
  EXPECT_EQ(Order({}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(orders_.size(), 0u);
}

constexpr unsigned kScratchMax = ipc::limits::kRenameBytesMax;
using Addresses = std::vector<CUdeviceptr>;

TEST_F(LaunchOrdersTest, OrdersHavePartsOfTheScratchMemory) {
  EXPECT_EQ(Rename({0, 8, 0, 0, 16, 99, 3, 0, 0}, 100), CUDA_SUCCESS);
  EXPECT_EQ(Rename({1, 8, 7}, 513, kPlace + 1024), CUDA_SUCCESS);
  EXPECT_EQ(Rename({2, 8, 7}, 8, kPlace + 2048), CUDA_SUCCESS);
  EXPECT_EQ(AddressesAt(kPlace), (Addresses{0, 99, 0}));
  EXPECT_EQ(AddressesAt(kPlace + 1024), Addresses{512 + 7});
  EXPECT_EQ(AddressesAt(kPlace + 2048), Addresses{512 + 1024 + 7});
  EXPECT_EQ(scratch_.taken, 0) << "no graph needs it yet";
  EXPECT_EQ(orders_.TakeScratch(), scratch_.address);
}

TEST_F(LaunchOrdersTest, PartsOfTheScratchMemoryDoNotOverlap) {
  EXPECT_EQ(Rename({0, 8, 0}, kScratchMax - 512), CUDA_SUCCESS);
  EXPECT_EQ(Rename({0, 8, 0}, 513, kPlace + 1024), CUDA_SUCCESS);
  EXPECT_EQ(orders_.Find(kPlace + 1024, messages_), nullptr) << "no part is left for it";
  EXPECT_EQ(Rename({0, 8, 0}, 512, kPlace + 1024), CUDA_SUCCESS);
  EXPECT_EQ(AddressesAt(kPlace + 1024), Addresses{kScratchMax - 512});
  EXPECT_EQ(Rename({0, 8, 0}, 1, kPlace), CUDA_SUCCESS);
  EXPECT_FALSE(Holds()) << "a graph of the order before may be under way still";
}

TEST_F(LaunchOrdersTest, TheScratchMemoryGoesWithTheOrders) {
  EXPECT_EQ(Rename({0, 8, 0}, kScratchMax), CUDA_SUCCESS);
  EXPECT_EQ(orders_.ForgetOrders(), CUDA_SUCCESS);
  EXPECT_EQ(scratch_.given_back, 1);
  EXPECT_EQ(Rename({0, 8, 0}, kScratchMax), CUDA_SUCCESS);
  EXPECT_TRUE(Holds());
  orders_.Clear();
  EXPECT_EQ(scratch_.given_back, 1) << "all memory of the session goes";
  EXPECT_FALSE(Holds());
}

TEST_F(LaunchOrdersTest, OrdersWithoutRenamesOutliveTheScratchMemory) {
  EXPECT_EQ(Rename({0, 8, 0}, kScratchMax), CUDA_SUCCESS);
  EXPECT_EQ(Rename({}, 0, kPlace + 1024), CUDA_SUCCESS);
  orders_.ForgetRenames();
  EXPECT_EQ(scratch_.given_back, 1);
  EXPECT_FALSE(Holds());
  EXPECT_NE(orders_.Find(kPlace + 1024, messages_), nullptr);
  EXPECT_EQ(Rename({0, 8, 0}, kScratchMax), CUDA_SUCCESS);
  EXPECT_TRUE(Holds());
}

TEST_F(LaunchOrdersTest, RenamesThatMakeNoSenseAreRefused) {
  EXPECT_EQ(Rename({0, 8, 0}, kScratchMax + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Rename({0, 8, 512}, 512), CUDA_ERROR_INVALID_VALUE) << "beyond the part";
  EXPECT_EQ(Rename({0, 8, 0}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Rename({4, 8, 0}, 512), CUDA_ERROR_INVALID_VALUE) << "no such launch";
  EXPECT_EQ(Rename({0, 8}, 512), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Rename({0, 8, 0, 0, 8, 1}, 512), CUDA_ERROR_INVALID_VALUE) << "twice";
  EXPECT_EQ(Rename({1, 8, 0, 0, 8, 1}, 512), CUDA_ERROR_INVALID_VALUE) << "backwards";
  EXPECT_EQ(orders_.size(), 0u);
  EXPECT_EQ(Rename({}, 0), CUDA_SUCCESS) << "as an order without renames";
}

// Whatever bytes a client writes, what holds is a run of whole launches.
TEST_F(LaunchOrdersTest, WhatHoldsIsARunOfLaunches) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 20'000; ++round) {
    Write(1 + static_cast<uint32_t>(random() % 5));
    for (uint64_t changes = random() % 3; changes != 0; --changes)
      area_[kPlace + random() % messages_.size()] = static_cast<std::byte>(random() % 64);
    if (Order({}) != CUDA_SUCCESS) continue;
    for (uint64_t changes = random() % 3; changes != 0; --changes)
      messages_[random() % messages_.size()] = static_cast<std::byte>(random() % 64);
    if (!Holds()) continue;
    size_t at = 0;
    while (at < messages_.size()) {
      const ipc::MessageHeader header = ipc::HeaderAt(messages_, at);
      ASSERT_EQ(header.op, static_cast<uint16_t>(ipc::Op::Launch));
      at += ipc::PaddedBytes(header.bytes);
    }
    ASSERT_EQ(at, messages_.size());
  }
}

}  // namespace
}  // namespace worker
