// In which iteration a launch-bound loop is first sent as repeats: in the third, whatever
// boundaries the detector of iterations finds among equal launches before.
#include <gtest/gtest.h>

#include <cstdint>

#include "shim/iterations/detector.h"
#include "tests/ipc/chunks/chunk_pair.h"

namespace ipc {
namespace {

class FirstReplayTest : public ChunksTest, public testing::WithParamInterface<uint32_t> {
 protected:
  // An iteration of the e2e program launch_loop: so many equal launches, and a read-back for which
  // the host waits. Returns how many messages went to the worker.
  size_t Iterate(uint32_t launches) {
    sent_.clear();
    given_.clear();
    for (uint32_t i = 0; i < launches; ++i) {
      Detect({.identity = 1, .shape = 1, .computes = true, .synced = i == 0 && iterations_ != 0});
      Send(Message(kLaunch, {1, 2, 3, 4}));
    }
    Detect({.identity = 2, .shape = 4});
    Send(Message(kCopy, {4}));
    Send(Message(kMark, {iterations_++}), true);
    return sent_.size();
  }

 private:
  void Detect(const shim::iterations::Op& op) {
    if (detector_.Next(op).boundary) SendCut(Message(kBoundary, {}));
  }

  static constexpr uint16_t kLaunch = 1, kCopy = 2, kMark = 3, kBoundary = 4;
  shim::iterations::Detector detector_;
  uint32_t iterations_ = 0;
};

TEST_P(FirstReplayTest, IsTheThirdIteration) {
  Iterate(GetParam());
  const size_t second = Iterate(GetParam());
  EXPECT_GE(second, GetParam() + 2);
  const size_t runs = (GetParam() + 2 + limits::kChunkMessages - 1) / limits::kChunkMessages;
  for (int iteration = 3; iteration < 8; ++iteration)
    EXPECT_LE(Iterate(GetParam()), runs + 3) << iteration << ": a boundary, and two at the end";
}

INSTANTIATE_TEST_SUITE_P(All, FirstReplayTest,
                         testing::Values(4, 10, 50, 60, 62, 63, 64, 200, 1000));

}  // namespace
}  // namespace ipc
