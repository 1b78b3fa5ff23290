// Both ends of the way of hidden states, in one process and without a device.
#include "serve/llm/engine/hidden_channel.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "serve/engine/child_process.h"

namespace serve::llm {
namespace {

constexpr HiddenShape kShape = {3, 5};

class HiddenChannelTest : public testing::Test {
 protected:
  HiddenChannelTest() : pair_(*engine::SocketPair::Make(SOCK_SEQPACKET)) {}

  void Connect() {
    sender_ = *HiddenSender::Open(std::move(pair_.ends[0]), kShape);
    receiver_ = *HiddenReceiver::Open(std::move(pair_.ends[1]), kShape);
  }

  engine::SocketPair pair_;
  std::optional<HiddenSender> sender_;
  std::optional<HiddenReceiver> receiver_;
};

TEST_F(HiddenChannelTest, RowsReachTheNextStage) {
  Connect();
  ASSERT_TRUE(receiver_->SendWidth({24, true}).ok());
  const engine::GemmWidth width = *sender_->ReceiveWidth();
  EXPECT_EQ(width.columns, 24);
  EXPECT_TRUE(width.multiples);
  for (uint64_t plan = 7; plan < 20; ++plan) {
    float* const slot = *sender_->WaitForSlot(plan);
    std::fill(slot, slot + kShape.SlotElements(), static_cast<float>(plan));
    ASSERT_TRUE(sender_->Pass(plan).ok());
    const float* const rows = *receiver_->WaitForRows(plan);
    EXPECT_EQ(rows[0], static_cast<float>(plan));
    EXPECT_EQ(rows[kShape.SlotElements() - 1], static_cast<float>(plan));
    ASSERT_TRUE(receiver_->Release(plan).ok());
  }
}

// The stage before is ahead by kHiddenSlots plans at most, and overwrites nothing that is read.
TEST_F(HiddenChannelTest, ASlotIsFreeWhenItWasReleased) {
  Connect();
  constexpr uint64_t kPlans = 200;
  std::thread first([this] {
    for (uint64_t plan = 1; plan <= kPlans; ++plan) {
      float* const slot = *sender_->WaitForSlot(plan);
      std::fill(slot, slot + kShape.SlotElements(), static_cast<float>(plan));
      EXPECT_TRUE(sender_->Pass(plan).ok());
    }
  });
  for (uint64_t plan = 1; plan <= kPlans; ++plan) {
    const float* const rows = *receiver_->WaitForRows(plan);
    std::this_thread::yield();
    EXPECT_TRUE(std::all_of(rows, rows + kShape.SlotElements(), [plan](float value) {
      return value == static_cast<float>(plan);
    })) << plan;
    EXPECT_TRUE(receiver_->Release(plan).ok());
  }
  first.join();
}

TEST_F(HiddenChannelTest, ANeighboursEndIsTold) {
  Connect();
  receiver_.reset();
  EXPECT_TRUE(absl::IsCancelled(sender_->ReceiveWidth().status()));
  EXPECT_TRUE(absl::IsCancelled(sender_->Pass(1)));
  ASSERT_TRUE(sender_->WaitForSlot(2).ok());
  (void)sender_->Pass(2);
  EXPECT_TRUE(absl::IsCancelled(sender_->WaitForSlot(3).status()));

  pair_ = *engine::SocketPair::Make(SOCK_SEQPACKET);
  Connect();
  sender_.reset();
  EXPECT_TRUE(absl::IsCancelled(receiver_->WaitForRows(1).status()));
  pair_ = *engine::SocketPair::Make(SOCK_SEQPACKET);
  pair_.ends[0].Reset();
  EXPECT_TRUE(absl::IsCancelled(HiddenReceiver::Open(std::move(pair_.ends[1]), kShape).status()));
}

TEST_F(HiddenChannelTest, NonsenseIsRefused) {
  const auto refuses = [](const absl::Status& status) {
    return status.code() == absl::StatusCode::kInternal;
  };
  sender_ = *HiddenSender::Open(std::move(pair_.ends[0]), kShape);
  EXPECT_TRUE(refuses(HiddenReceiver::Open(std::move(pair_.ends[1]), {3, 6}).status()));

  pair_ = *engine::SocketPair::Make(SOCK_SEQPACKET);
  const int raw = dup(pair_.ends[1].get());
  sender_ = *HiddenSender::Open(std::move(pair_.ends[0]), kShape);
  for (const std::string& packet : {std::string("x"), std::string(24, 'x'), std::string(1000, 0)}) {
    ASSERT_GT(send(raw, packet.data(), packet.size(), 0), 0);
    EXPECT_TRUE(refuses(sender_->ReceiveWidth().status()));
  }
  close(raw);

  pair_ = *engine::SocketPair::Make(SOCK_SEQPACKET);
  Connect();
  ASSERT_TRUE(sender_->Pass(4).ok());
  EXPECT_TRUE(refuses(receiver_->WaitForRows(5).status()));
}

}  // namespace
}  // namespace serve::llm
