// The keeper's door: what it has heard when it answers.
#include "daemon/keeper/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include "tests/daemon/keeper_fixture.h"

namespace keeper {
namespace {

namespace wire = ipc::control;
using wire::KeeperToDaemon;
using wire::KeeperToWorker;
using wire::Send;
using wire::ToKeeper;
using wire::WorkerToKeeper;

using KeeperServerTest = KeeperTest;

// The keeper hears of the end of both before it comes to what the worker had asked for.
TEST_F(KeeperServerTest, WhatAnEndedWorkerAskedForEndsWithItsSession) {
  int daemon[2], worker[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, daemon), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, worker), 0);
  Server server(&keeper_, 60);
  server.Greet(ipc::UniqueFd(daemon[0]));
  server.Greet(ipc::UniqueFd(worker[0]));
  ASSERT_TRUE(wire::Receive<KeeperToDaemon>(worker[1], 0).ok());
  const Owner session = {OwnerKind::kSession, 5};
  // First, so that lanewayd is heard first in each round.
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::CountOutside{}).ok());
  ASSERT_TRUE(Send<ToKeeper>(worker[1], wire::Register{1}).ok());
  ASSERT_TRUE(
      Send<WorkerToKeeper>(worker[1], wire::CreateExtent{{0, session, 4 * kMiB, 0, 0, 0, 0}}).ok());
  close(worker[1]);
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::ReleaseWorker{1}).ok());
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::ReleaseOwner{session}).ok());
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::Stop{}).ok());
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
  ASSERT_TRUE(Send<ToKeeper>(worker[1], wire::Register{1}).ok());
  ASSERT_TRUE(
      Send<WorkerToKeeper>(worker[1], wire::CreateExtent{{0, session, 4 * kMiB, 0, 0, 0, 0}}).ok());
  close(worker[1]);
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::CountOutside{}).ok());
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::ReleaseWorker{1}).ok());
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::ReleaseOwner{session}).ok());
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::Stop{}).ok());
  server.Run();
  EXPECT_EQ(Used(), 0u);
  close(daemon[1]);
}

// Two workers ask, and each is heard for the other: what a third said before counts in both
// answers.
TEST_F(KeeperServerTest, AnswersTakeAccountOfAllThatWasSaidBefore) {
  int first[2], second[2], third[2], daemon[2];
  for (int* const pair : {first, second, third, daemon})
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  Server server(&keeper_, 60);
  for (int* const pair : {first, second, third, daemon}) {
    server.Greet(ipc::UniqueFd(pair[0]));
    ASSERT_TRUE(wire::Receive<KeeperToDaemon>(pair[1], 0).ok());
  }
  const Owner session = {OwnerKind::kSession, 5};
  uint64_t left = 0, freed = 0;
  ASSERT_EQ(Create(3, 5, 2 * kMiB, &left), CUDA_SUCCESS);
  ASSERT_EQ(Create(3, 5, 4 * kMiB, &freed), CUDA_SUCCESS);
  ASSERT_TRUE(Send<ToKeeper>(first[1], wire::Register{1}).ok());
  ASSERT_TRUE(Send<WorkerToKeeper>(first[1], wire::ListExtents{session}).ok());
  ASSERT_TRUE(Send<ToKeeper>(second[1], wire::Register{2}).ok());
  ASSERT_TRUE(Send<WorkerToKeeper>(second[1], wire::GetMemory{0}).ok());
  ASSERT_TRUE(Send<ToKeeper>(third[1], wire::Register{3}).ok());
  ASSERT_TRUE(Send<WorkerToKeeper>(third[1], wire::DropExtent{left}).ok());
  ASSERT_TRUE(Send<WorkerToKeeper>(third[1], wire::FreeExtent{freed}).ok());
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::CountOutside{}).ok());  // Stop is of the next round
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::Stop{}).ok());
  server.Run();
  const absl::StatusOr<wire::Received<KeeperToWorker>> list =
      wire::Receive<KeeperToWorker>(first[1], 0);
  ASSERT_TRUE(list.ok());
  const wire::ExtentList* const part = std::get_if<wire::ExtentList>(&list->message);
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->count, 1u);
  EXPECT_EQ(part->extents[0].id, left);
  const absl::StatusOr<wire::Received<KeeperToWorker>> memory =
      wire::Receive<KeeperToWorker>(second[1], 0);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(std::get<wire::MemoryReply>(memory->message).free_bytes, kDeviceBytes - 2 * kMiB);
  for (int* const pair : {first, second, third, daemon}) close(pair[1]);
}

// A worker that gives lanewayd's orders and a process that asks for memory before its Register lose
// their own connections.
TEST_F(KeeperServerTest, MessagesOfTheOtherKindOfPeerEndTheConnection) {
  int worker[2], stranger[2], daemon[2];
  for (int* const pair : {worker, stranger, daemon})
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  Server server(&keeper_, 60);
  for (int* const pair : {worker, stranger, daemon}) {
    server.Greet(ipc::UniqueFd(pair[0]));
    ASSERT_TRUE(wire::Receive<KeeperToDaemon>(pair[1], 0).ok());
  }
  ASSERT_TRUE(Send<ToKeeper>(worker[1], wire::Register{1}).ok());
  ASSERT_TRUE(Send<ToKeeper>(worker[1], wire::ReleaseWorker{2}).ok());
  ASSERT_TRUE(Send<WorkerToKeeper>(stranger[1], wire::GetMemory{0}).ok());
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::Query{}).ok());  // hears the others first
  ASSERT_TRUE(Send<ToKeeper>(daemon[1], wire::Stop{}).ok());
  server.Run();
  EXPECT_TRUE(absl::IsUnavailable(wire::Receive<KeeperToWorker>(worker[1], 0).status()));
  EXPECT_TRUE(absl::IsUnavailable(wire::Receive<KeeperToWorker>(stranger[1], 0).status()));
  EXPECT_TRUE(wire::Receive<KeeperToDaemon>(daemon[1], 0).ok());
  for (int* const pair : {worker, stranger, daemon}) close(pair[1]);
}

}  // namespace
}  // namespace keeper
