// The keeper's door: what it has heard when it answers.
#include "daemon/keeper/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include "tests/daemon/keeper_fixture.h"

namespace keeper {
namespace {

using KeeperServerTest = KeeperTest;

// The keeper hears of the end of both before it comes to what the worker had asked for.
TEST_F(KeeperServerTest, WhatAnEndedWorkerAskedForEndsWithItsSession) {
  int daemon[2], worker[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, daemon), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, worker), 0);
  Server server(&keeper_, 60);
  server.Greet(ipc::UniqueFd(daemon[0]));
  server.Greet(ipc::UniqueFd(worker[0]));
  ASSERT_TRUE(ipc::control::Receive(worker[1], 0).ok());
  const Owner session = {OwnerKind::kSession, 5};
  // First, so that lanewayd is heard first in each round.
  ASSERT_TRUE(Send(daemon[1], ipc::control::CountOutside{}).ok());
  ASSERT_TRUE(Send(worker[1], ipc::control::Register{1}).ok());
  ASSERT_TRUE(Send(worker[1], ipc::control::CreateExtent{{0, session, 4 * kMiB, 0, 0, 0, 0}}).ok());
  close(worker[1]);
  ASSERT_TRUE(Send(daemon[1], ipc::control::ReleaseWorker{1}).ok());
  ASSERT_TRUE(Send(daemon[1], ipc::control::ReleaseOwner{session}).ok());
  ASSERT_TRUE(Send(daemon[1], ipc::control::Stop{}).ok());
  const CUmemGenericAllocationHandle before = last_handle;
  server.Run();
  EXPECT_EQ(last_handle, before + 1) << "it was made";
  EXPECT_EQ(Used(), 0u);
  close(daemon[1]);
}

// The same when the keeper comes to the worker first, and its end has been said already.
TEST_F(KeeperServerTest, WhatAWorkerAskedForBeforeItsEndIsMadeBeforeIt) {
  int daemon[2], worker[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, daemon), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, worker), 0);
  Server server(&keeper_, 60);
  server.Greet(ipc::UniqueFd(worker[0]));
  server.Greet(ipc::UniqueFd(daemon[0]));
  const Owner session = {OwnerKind::kSession, 5};
  ASSERT_TRUE(Send(worker[1], ipc::control::Register{1}).ok());
  ASSERT_TRUE(Send(worker[1], ipc::control::CreateExtent{{0, session, 4 * kMiB, 0, 0, 0, 0}}).ok());
  close(worker[1]);
  ASSERT_TRUE(Send(daemon[1], ipc::control::CountOutside{}).ok());
  ASSERT_TRUE(Send(daemon[1], ipc::control::ReleaseWorker{1}).ok());
  ASSERT_TRUE(Send(daemon[1], ipc::control::ReleaseOwner{session}).ok());
  ASSERT_TRUE(Send(daemon[1], ipc::control::Stop{}).ok());
  server.Run();
  EXPECT_EQ(Used(), 0u);
  close(daemon[1]);
}

// Two workers ask, and each is heard for the other: what a third said before counts in both
// answers.
TEST_F(KeeperServerTest, AnswersTakeAccountOfAllThatWasSaidBefore) {
  int first[2], second[2], third[2];
  for (int* const pair : {first, second, third})
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  Server server(&keeper_, 60);
  for (int* const pair : {first, second, third}) {
    server.Greet(ipc::UniqueFd(pair[0]));
    ASSERT_TRUE(ipc::control::Receive(pair[1], 0).ok());
  }
  const Owner session = {OwnerKind::kSession, 5};
  uint64_t left = 0, freed = 0;
  ASSERT_EQ(Create(3, 5, 2 * kMiB, &left), CUDA_SUCCESS);
  ASSERT_EQ(Create(3, 5, 4 * kMiB, &freed), CUDA_SUCCESS);
  ASSERT_TRUE(Send(first[1], ipc::control::Register{1}).ok());
  ASSERT_TRUE(Send(first[1], ipc::control::ListExtents{session}).ok());
  ASSERT_TRUE(Send(second[1], ipc::control::Register{2}).ok());
  ASSERT_TRUE(Send(second[1], ipc::control::GetMemory{0}).ok());
  ASSERT_TRUE(Send(third[1], ipc::control::Register{3}).ok());
  ASSERT_TRUE(Send(third[1], ipc::control::DropExtent{left}).ok());
  ASSERT_TRUE(Send(third[1], ipc::control::FreeExtent{freed}).ok());
  ASSERT_TRUE(Send(third[1], ipc::control::Stop{}).ok());
  server.Run();
  const absl::StatusOr<ipc::control::Received> list = ipc::control::Receive(first[1], 0);
  ASSERT_TRUE(list.ok());
  const ipc::control::ExtentList* const part =
      std::get_if<ipc::control::ExtentList>(&list->message);
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->count, 1u);
  EXPECT_EQ(part->extents[0].id, left);
  const absl::StatusOr<ipc::control::Received> memory = ipc::control::Receive(second[1], 0);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(std::get<ipc::control::MemoryReply>(memory->message).free_bytes,
            kDeviceBytes - 2 * kMiB);
  for (int* const pair : {first, second, third}) close(pair[1]);
}

}  // namespace
}  // namespace keeper
