// What CUDA promises of the legacy default stream, inside one session.
#include "daemon/worker/streams.h"

#include <gtest/gtest.h>

#include "tests/worker/recording_driver.h"

namespace worker {
namespace {

class StreamsTest : public testing::Test {
 protected:
  StreamTable::Stream* Create(unsigned flags) {
    StreamTable::Stream* stream = nullptr;
    EXPECT_EQ(streams_.Create(next_slot_++, flags, 0, 0, &stream), CUDA_SUCCESS);
    return stream;
  }
  Recording& recording_ = FreshRecording();
  Environment environment_ = RecordingEnvironment();
  StreamTable streams_{environment_, nullptr};
  uint32_t next_slot_ = ipc::limits::kLegacySlots;
};

TEST_F(StreamsTest, LegacyWorkWaitsForBlockingStreamsOnce) {
  StreamTable::Stream* const blocking = Create(CU_STREAM_DEFAULT);
  StreamTable::Stream* const legacy = streams_.Legacy(0);
  streams_.Use(blocking);
  EXPECT_TRUE(recording_.calls.empty());
  streams_.Use(legacy);
  EXPECT_EQ(recording_.calls.size(), 2u) << "one record, one wait";
  streams_.Use(legacy);
  EXPECT_EQ(recording_.calls.size(), 2u) << "nothing new to wait for";
}

TEST_F(StreamsTest, BlockingWorkWaitsForTheLegacyStream) {
  StreamTable::Stream* const blocking = Create(CU_STREAM_DEFAULT);
  streams_.Use(streams_.Legacy(0));
  streams_.Use(blocking);
  EXPECT_EQ(recording_.calls.size(), 2u);
}

TEST_F(StreamsTest, NonBlockingStreamsAreFree) {
  StreamTable::Stream* const free = Create(CU_STREAM_NON_BLOCKING);
  streams_.Use(streams_.Legacy(0));
  streams_.Use(free);
  streams_.Use(streams_.Legacy(0));
  EXPECT_TRUE(recording_.calls.empty());
}

TEST_F(StreamsTest, ADestroyedStreamsWorkStillComesBeforeLegacyWork) {
  StreamTable::Stream* const blocking = Create(CU_STREAM_DEFAULT);
  streams_.Legacy(0);
  streams_.Use(blocking);
  EXPECT_EQ(streams_.Destroy(blocking->driver), CUDA_SUCCESS);
  EXPECT_EQ(recording_.calls.size(), 2u);
}

TEST_F(StreamsTest, RefusesForeignSlotsAndStreams) {
  StreamTable::Stream* stream = nullptr;
  EXPECT_EQ(streams_.Create(0, 0, 0, 0, &stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(streams_.Create(ipc::limits::kStreamsMax, 0, 0, 0, &stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(streams_.Destroy(reinterpret_cast<CUstream>(77)), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(StreamsTest, AJoinOrdersAllStreamsBehindTheBusyOnes) {
  StreamTable::Stream* const a = Create(CU_STREAM_NON_BLOCKING);
  Create(CU_STREAM_NON_BLOCKING);
  Create(CU_STREAM_NON_BLOCKING);
  streams_.Join();
  EXPECT_TRUE(recording_.calls.empty()) << "all are idle";
  recording_.busy_streams.insert(a->driver);
  streams_.Join();
  EXPECT_EQ(recording_.calls.size(), 3u) << "one record, and the two others wait";
  recording_.calls.clear();
  for (StreamTable::Stream* stream : streams_.All()) recording_.busy_streams.insert(stream->driver);
  streams_.Join();
  EXPECT_EQ(recording_.calls.size(), 2u + 2 + 1 + 2) << "two join the hub, and two wait for it";
}

}  // namespace
}  // namespace worker
