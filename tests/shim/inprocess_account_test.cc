// The account of a program in in-process mode: when lanewayd is asked for memory, and told of less.
#include "shim/inprocess/account.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "ipc/calls/limits.h"

namespace shim::inprocess {
namespace {

namespace wire = ipc::control;

constexpr uint64_t kOwnSession = 7;
constexpr uint64_t kStep = ipc::limits::kExtentBytesMin;

class InprocessAccountTest : public ::testing::Test {
 protected:
  InprocessAccountTest()
      : iterations_(iterations::From::kHeader, nullptr),
        account_({[this] { return there_; }, [] { return kOwnSession; },
                  [this](const wire::ProgramToDaemon& message) { Hear(message); }},
                 &iterations_) {}

  // lanewayd answers at once, while the program's thread is in its call.
  void Hear(const wire::ProgramToDaemon& message) {
    if (const wire::MemoryNeeded* const needed = std::get_if<wire::MemoryNeeded>(&message)) {
      EXPECT_EQ(needed->session_id, kOwnSession);
      asked_.push_back(needed->bytes);
      wire::MemoryAnswer answer;
      answer.result = refusal_;
      if (silent_) {
        there_ = false;
        account_.OnDown();
      } else {
        account_.OnAnswer(answer);
      }
    } else if (const wire::MemoryFreed* const freed = std::get_if<wire::MemoryFreed>(&message)) {
      freed_.push_back(freed->bytes);
    } else if (std::holds_alternative<wire::GetMemory>(message)) {
      wire::MemoryReply reply;
      reply.free_bytes = 10 * kStep;
      reply.total_bytes = 20 * kStep;
      account_.OnReply(reply);
    }
  }

  bool there_ = true;
  bool silent_ = false;  // lanewayd ends in place of an answer
  uint32_t refusal_ = 0;
  std::vector<uint64_t> asked_, freed_;
  iterations::Iterations iterations_;
  Account account_;
};

TEST_F(InprocessAccountTest, AsksForWholeStepsAndOnlyForWhatItLacks) {
  EXPECT_EQ(account_.Take(1), CUDA_SUCCESS);
  EXPECT_EQ(account_.Take(kStep - 1), CUDA_SUCCESS);
  EXPECT_EQ(asked_, std::vector<uint64_t>{kStep});
  EXPECT_EQ(account_.Take(kStep + 1), CUDA_SUCCESS);
  EXPECT_EQ(asked_, (std::vector<uint64_t>{kStep, 2 * kStep}));
  EXPECT_EQ(account_.held_bytes(), 3 * kStep);
}

TEST_F(InprocessAccountTest, WhatIsFreedIsUsedAgainUntilItIsTrimmed) {
  ASSERT_EQ(account_.Take(4 * kStep), CUDA_SUCCESS);
  EXPECT_FALSE(account_.has_surplus());
  account_.Give(3 * kStep);
  EXPECT_TRUE(account_.has_surplus());
  ASSERT_EQ(account_.Take(kStep), CUDA_SUCCESS);
  EXPECT_EQ(asked_.size(), 1u) << "an allocation in each iteration asks once";
  account_.Trim();
  EXPECT_EQ(freed_, std::vector<uint64_t>{2 * kStep});
  EXPECT_EQ(account_.held_bytes(), 2 * kStep);
  EXPECT_FALSE(account_.has_surplus());
  account_.Trim();
  EXPECT_EQ(freed_.size(), 1u) << "nothing more is to be told";
}

TEST_F(InprocessAccountTest, ARefusalIsTheCallsErrorAndCountsNothing) {
  ASSERT_EQ(account_.Take(kStep), CUDA_SUCCESS);
  refusal_ = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(account_.Take(kStep), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(account_.held_bytes(), kStep);
  refusal_ = 0;
  EXPECT_EQ(account_.Take(kStep), CUDA_SUCCESS);
  EXPECT_EQ(asked_.back(), kStep) << "the refused bytes are not used";
}

TEST_F(InprocessAccountTest, WithoutLanewaydEverythingIsAllowedAndCounted) {
  there_ = false;
  EXPECT_EQ(account_.Take(kStep), CUDA_SUCCESS);
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(account_.held_bytes(), kStep) << "the next lanewayd is told of it";
  EXPECT_FALSE(account_.Look(0).has_value());
}

TEST_F(InprocessAccountTest, ADaemonThatEndsInPlaceOfAnAnswerAllows) {
  silent_ = true;
  EXPECT_EQ(account_.Take(kStep), CUDA_SUCCESS);
  EXPECT_EQ(asked_.size(), 1u);
  EXPECT_EQ(account_.held_bytes(), kStep);
}

TEST_F(InprocessAccountTest, ANumberThatNoDeviceHasIsRefusedWithoutAQuestion) {
  ASSERT_EQ(account_.Take(1), CUDA_SUCCESS);
  EXPECT_EQ(account_.Take(UINT64_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(asked_.size(), 1u);
}

TEST_F(InprocessAccountTest, WhatIsHeldAndNotUsedIsFreeForTheProgram) {
  ASSERT_EQ(account_.Take(kStep + 1), CUDA_SUCCESS);
  const std::optional<wire::MemoryReply> reply = account_.Look(0);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->free_bytes, 10 * kStep + kStep - 1);
  EXPECT_EQ(reply->total_bytes, 20 * kStep);
}

TEST_F(InprocessAccountTest, AnAllocationIsForgottenOnceAndByItsKind) {
  account_.Remember(Kind::kMemory, 5, 100);
  account_.Remember(Kind::kArray, 5, 200);
  EXPECT_EQ(account_.Forget(Kind::kPhysical, 5), 0u);
  EXPECT_EQ(account_.Forget(Kind::kArray, 5), 200u);
  EXPECT_EQ(account_.Forget(Kind::kArray, 5), 0u);
  EXPECT_EQ(account_.Forget(Kind::kMemory, 5), 100u);
}

TEST_F(InprocessAccountTest, ThreadsAskOneAfterTheOther) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([this] { EXPECT_EQ(account_.Take(kStep), CUDA_SUCCESS); });
  threads.clear();
  EXPECT_EQ(account_.held_bytes(), 4 * kStep);
  EXPECT_EQ(asked_.size(), 4u);
}

}  // namespace
}  // namespace shim::inprocess
