// Lanes when one keeper follows another.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/daemon/worker/lanes_fixture.h"

namespace worker {
namespace {

using LanesKeeperTest = LanesTest;

// The others may have a picture of the lane that an earlier keeper gave them.
TEST_F(LanesKeeperTest, TheFirstToEnterSinceAKeeperCameLooksAndSaysSo) {
  struct Link : DaemonLink {
    void Post(const ipc::control::WorkerToDaemon&) override { ++posted; }
    uint64_t Daemon() const override { return 1; }
    int posted = 0;
  } link;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  EXPECT_EQ(recording_.claims->OnNewKeeper(), std::set<uint64_t>{kLane}) << "it is inside";
  lanes_.Exit(member(0));
  EXPECT_TRUE(recording_.claims->OnNewKeeper().empty());
  environment_.daemon = &link;
  recording_.claimed.clear();
  recording_.AddExtent({99, {OwnerKind::kLane, kLane}, 4 * MiB, 0, 0, 0, 1000});
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
    EXPECT_EQ(member(0)->mapped_bytes(), 4 * MiB);
    EXPECT_EQ(recording_.claimed, std::vector<uint64_t>{kLane}) << "once";
    EXPECT_EQ(link.posted, 1);
    lanes_.Exit(member(0));
  }
  environment_.daemon = nullptr;
}

// What a session inside has in the lane stays, whatever the keeper says meanwhile.
TEST_F(LanesKeeperTest, WhoIsInsideLooksAgainWhenItEntersNext) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 4 * MiB), CUDA_SUCCESS);
  (void)recording_.claims->OnNewKeeper();
  recording_.extents.clear();  // and the keeper was told of nothing
  lanes_.OnChanged(0);
  EXPECT_EQ(member(0)->mapped_bytes(), 4 * MiB);
  lanes_.Exit(member(0));
  lanes_.OnChanged(0);
  EXPECT_EQ(member(0)->mapped_bytes(), 0u);
}

}  // namespace
}  // namespace worker
