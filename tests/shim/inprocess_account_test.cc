// The account of a program in in-process mode: when lanewayd is asked for memory, and told of less.
#include "shim/inprocess/account.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <utility>
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
        account_({[] { return kOwnSession; },
                  [this](const wire::ProgramToDaemon& message) { Hear(message); }},
                 &iterations_) {
    Greet();
  }

  void Greet() {
    told_ = account_.OnHello();
    account_.OnUp();
  }

  // lanewayd answers at once. The account tells of freed memory with its lock held.
  void Hear(const wire::ProgramToDaemon& message) {
    if (const wire::MemoryNeeded* const needed = std::get_if<wire::MemoryNeeded>(&message)) {
      EXPECT_EQ(needed->session_id, kOwnSession);
      asked_.push_back(needed->bytes);
      wire::MemoryAnswer answer;
      answer.result = refusal_;
      if (instead_of_answer_) return std::exchange(instead_of_answer_, nullptr)();
      account_.OnAnswer(answer);
      if (std::exchange(replaced_, false)) {
        account_.OnDown();
        Greet();
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

  uint64_t told_ = 0;                        // by the last hello
  std::function<void()> instead_of_answer_;  // once
  bool replaced_ = false;                    // another lanewayd comes right after its answer
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
  EXPECT_FALSE(account_.has_surplus());
  account_.Trim();
  EXPECT_EQ(freed_.size(), 1u) << "nothing more is to be told";
}

TEST_F(InprocessAccountTest, ARefusalIsTheCallsErrorAndCountsNothing) {
  ASSERT_EQ(account_.Take(kStep), CUDA_SUCCESS);
  refusal_ = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(account_.Take(kStep), CUDA_ERROR_OUT_OF_MEMORY);
  refusal_ = 0;
  EXPECT_EQ(account_.Take(kStep), CUDA_SUCCESS);
  EXPECT_EQ(asked_.back(), kStep) << "the refused bytes are not used";
}

TEST_F(InprocessAccountTest, WithoutLanewaydEverythingIsAllowedAndCounted) {
  account_.OnDown();
  EXPECT_EQ(account_.Take(kStep), CUDA_SUCCESS);
  EXPECT_FALSE(account_.Look(0).has_value());
  account_.Give(1);
  EXPECT_EQ(account_.Take(1 + kStep), CUDA_SUCCESS);
  EXPECT_TRUE(asked_.empty());
  Greet();
  EXPECT_EQ(told_, 2 * kStep);
}

TEST_F(InprocessAccountTest, ADaemonThatEndsInPlaceOfAnAnswerAllows) {
  instead_of_answer_ = [this] { account_.OnDown(); };
  EXPECT_EQ(account_.Take(kStep), CUDA_SUCCESS);
  EXPECT_EQ(asked_.size(), 1u);
  Greet();
  EXPECT_EQ(told_, kStep);
}

TEST_F(InprocessAccountTest, WhatIsFreedAroundAHelloIsToldWhenItIsTaken) {
  ASSERT_EQ(account_.Take(3 * kStep), CUDA_SUCCESS);
  account_.OnDown();
  account_.Give(kStep);
  account_.Trim();
  EXPECT_FALSE(account_.has_surplus()) << "the hello tells of no more than is used";
  EXPECT_EQ(account_.OnHello(), 2 * kStep);
  account_.Give(kStep);
  account_.Trim();
  EXPECT_TRUE(freed_.empty()) << "lanewayd does not listen yet";
  account_.OnUp();
  EXPECT_TRUE(account_.has_surplus());
  account_.Trim();
  EXPECT_EQ(freed_, std::vector<uint64_t>{kStep});
}

// Allocated between a hello and its answer, memory would be in neither. The hello comes while the
// program's thread asks, and its answer from another thread: the link's.
TEST_F(InprocessAccountTest, AnAllocationWaitsForTheAnswerToAHello) {
  for (const bool taken : {true, false}) {
    asked_.clear();
    uint64_t told = 0;
    std::jthread link;
    instead_of_answer_ = [&] {
      account_.OnDown();
      told = account_.OnHello();
      link = std::jthread([&] { taken ? account_.OnUp() : account_.OnDown(); });
    };
    EXPECT_EQ(account_.Take(kStep), CUDA_SUCCESS);
    link.join();
    EXPECT_EQ(asked_, std::vector<uint64_t>(taken ? 2 : 1, kStep));
    Greet();
    EXPECT_EQ(told_, told + kStep);
  }
}

// The daemon that answered is gone before the program's thread reads the answer.
TEST_F(InprocessAccountTest, AnAnswerOfAnEarlierDaemonCountsNothing) {
  replaced_ = true;
  EXPECT_EQ(account_.Take(kStep), CUDA_SUCCESS);
  EXPECT_EQ(asked_, (std::vector<uint64_t>{kStep, kStep})) << "the next one is asked again";
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
  EXPECT_EQ(asked_, std::vector<uint64_t>(4, kStep));
}

}  // namespace
}  // namespace shim::inprocess
