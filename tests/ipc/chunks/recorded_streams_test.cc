// The recorded streams of tests/data/op_streams, sent in chunks as a client sends them.
//
// The streams have hashes of what is done and how much, and no messages. So an operation is a
// message as long as its hash says, with both hashes in it. A run ends where the host waits.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/ipc/chunks/chunk_pair.h"
#include "tests/shim/iterations/quality.h"

namespace ipc {
namespace {

using iterations_test::StreamName;

class RecordedStreamTest : public ChunksTest, public testing::WithParamInterface<StreamName> {
 protected:
  struct Share {
    uint64_t iterations = 0;
    uint64_t percent = 0;  // of the operations were repeated
  };
  // Of the stream's second half: there all has come before.
  Share Replay(const std::vector<shim::iterations::RecordedOp>& ops) {
    Share share;
    ChunkMatcher::Counts before;
    for (size_t i = 0; i < ops.size(); ++i) {
      share.iterations += ops[i].marked && i >= ops.size() / 2;
      if (ops[i].op.synced || i == ops.size() / 2) SendAlone(Message(kMark, {}));
      if (i == ops.size() / 2) before = matcher_.counts();
      if (i % 1024 == 0) Drain();
      std::vector<uint32_t> words(2 + ops[i].op.identity % kLengths, 0);
      words[0] = ops[i].op.identity;
      words[1] = ops[i].op.shape;
      Send(Message(kLaunch, words));
    }
    Drain();
    EXPECT_TRUE(given_.empty());
    const ChunkMatcher::Counts after = matcher_.counts();
    share.percent = 100 * (after.repeated - before.repeated) / (after.messages - before.messages);
    return share;
  }

 private:
  void Drain() {
    if (matcher_.holds()) EndRun();
    Receive();
    if (matcher_.full() && !matcher_.in_run()) matcher_.Forget();
  }

  static constexpr uint16_t kMark = 1, kLaunch = 2;
  static constexpr uint32_t kLengths = 24;
};

// One program ends with a search in a random order, without marks: nothing repeats there.
TEST_P(RecordedStreamTest, ArrivesAsItWasAndMostOfItIsRepeated) {
  const Share share = Replay(iterations_test::ReadStream(GetParam().name));
  if (share.iterations > 1) {
    EXPECT_GE(share.percent, 70u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordedStreamTest, testing::ValuesIn(iterations_test::AllStreams()),
                         [](const testing::TestParamInfo<StreamName>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace ipc
