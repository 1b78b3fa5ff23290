// What CUDA promises of the legacy default stream, inside one session.
#include "daemon/worker/streams.h"

#include <gtest/gtest.h>

#include "tests/daemon/worker/recording_driver.h"

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
  StreamTable streams_{environment_, nullptr, SeenDevices({}, 1)};
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

TEST_F(StreamsTest, ADestroyedStreamStaysUntilItsWorkIsDone) {
  StreamTable::Stream* const stream = Create(CU_STREAM_NON_BLOCKING);
  const CUstream driver = stream->driver;
  streams_.Use(stream);
  recording_.busy_streams.insert(driver);
  EXPECT_EQ(streams_.Destroy(driver), CUDA_SUCCESS);
  EXPECT_EQ(streams_.OfDriver(driver), nullptr) << "the program can't name it any more";
  EXPECT_EQ(streams_.Destroy(driver), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(streams_.All().size(), 1u) << "everything that waits for work waits for it";
  EXPECT_EQ(streams_.EndingOfDriver(driver), streams_.All().front());
  recording_.busy_streams.clear();
  EXPECT_TRUE(streams_.All().empty());
  EXPECT_EQ(streams_.EndingOfDriver(driver), nullptr);
}

TEST_F(StreamsTest, ADestroyedStreamsWorkStillComesBeforeLegacyWork) {
  StreamTable::Stream* const blocking = Create(CU_STREAM_DEFAULT);
  streams_.Use(blocking);
  recording_.busy_streams.insert(blocking->driver);
  EXPECT_EQ(streams_.Destroy(blocking->driver), CUDA_SUCCESS);
  streams_.Use(streams_.Legacy(0));
  EXPECT_EQ(recording_.calls.size(), 2u) << "though there was no legacy stream yet";
  streams_.Use(streams_.Legacy(0));
  EXPECT_EQ(recording_.calls.size(), 2u);
}

TEST_F(StreamsTest, AStreamComesAfterWhatIsDueInItsSlot) {
  StreamTable::Stream* const first = Create(CU_STREAM_NON_BLOCKING);
  const uint32_t slot = first->slot;
  recording_.busy_streams.insert(first->driver);
  StreamTable::Stream* second = nullptr;
  EXPECT_EQ(streams_.Create(slot, 0, 0, 0, &second), CUDA_ERROR_INVALID_VALUE) << "it lives";
  EXPECT_EQ(streams_.Destroy(first->driver), CUDA_SUCCESS);
  EXPECT_EQ(streams_.Create(slot, 0, 0, 0, &second), CUDA_SUCCESS);
  EXPECT_EQ(recording_.calls.size(), 2u) << "marks of both lie in one word";
}

TEST_F(StreamsTest, StreamsThatEndAreBounded) {
  for (uint32_t i = 0; i < ipc::limits::kStreamsMax; ++i) {
    StreamTable::Stream* stream = nullptr;
    ASSERT_EQ(streams_.Create(ipc::limits::kLegacySlots, CU_STREAM_NON_BLOCKING, 0, 0, &stream),
              CUDA_SUCCESS);
    recording_.busy_streams.insert(stream->driver);
    ASSERT_EQ(streams_.Destroy(stream->driver), CUDA_SUCCESS);
  }
  StreamTable::Stream* stream = nullptr;
  EXPECT_EQ(streams_.Create(ipc::limits::kLegacySlots, CU_STREAM_NON_BLOCKING, 0, 0, &stream),
            CUDA_ERROR_OUT_OF_MEMORY);
  recording_.busy_streams.clear();
  EXPECT_EQ(streams_.Create(ipc::limits::kLegacySlots, CU_STREAM_NON_BLOCKING, 0, 0, &stream),
            CUDA_SUCCESS);
}

TEST_F(StreamsTest, ADevicesLegacyStreamHasTheSlotOfTheNumberThatItsClientGivesIt) {
  ipc::SchedulingTerms terms;
  terms.device_count = 2;
  terms.devices[0] = 3;
  terms.devices[1] = 1;
  const SeenDevices seen(terms, 4);
  EXPECT_EQ(seen.count(), 2u);
  EXPECT_EQ(seen.At(0), 3);
  StreamTable streams(environment_, nullptr, seen);
  EXPECT_EQ(streams.Legacy(3)->slot, 0u);
  EXPECT_EQ(streams.Legacy(1)->slot, 1u);
  streams.Clear();
  EXPECT_EQ(SeenDevices({}, 4).count(), 4u) << "all, where none is named";
  EXPECT_EQ(SeenDevices({}, 4).At(2), 2);
  EXPECT_EQ(SeenDevices({}, 4).NumberOf(2), 2u);
}

TEST_F(StreamsTest, RefusesForeignSlotsAndStreams) {
  StreamTable::Stream* stream = nullptr;
  EXPECT_EQ(streams_.Create(0, 0, 0, 0, &stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(streams_.Create(ipc::limits::kStreamsMax, 0, 0, 0, &stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(streams_.Destroy(reinterpret_cast<CUstream>(77)), CUDA_ERROR_INVALID_HANDLE);
  // A name of nothing leads to no driver stream, and legacy streams that were never used have none.
  EXPECT_EQ(streams_.OfDriver(nullptr), nullptr);
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

TEST_F(StreamsTest, AJoinWaitsForAStreamThatEnds) {
  StreamTable::Stream* const a = Create(CU_STREAM_NON_BLOCKING);
  Create(CU_STREAM_NON_BLOCKING);
  recording_.busy_streams.insert(a->driver);
  EXPECT_EQ(streams_.Destroy(a->driver), CUDA_SUCCESS);
  streams_.Join();
  EXPECT_EQ(recording_.calls.size(), 2u) << "one record, and the other waits";
}

TEST_F(StreamsTest, AStreamThatIsMadeAfterAJoinComesAfterIt) {
  StreamTable::Stream* const a = Create(CU_STREAM_NON_BLOCKING);
  recording_.busy_streams.insert(a->driver);
  EXPECT_EQ(streams_.Destroy(a->driver), CUDA_SUCCESS);
  streams_.Join();
  EXPECT_EQ(recording_.calls.size(), 1u) << "one record, though there is no other stream yet";
  Create(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(recording_.calls.size(), 2u) << "the new stream waits";
  streams_.Legacy(0);
  EXPECT_EQ(recording_.calls.size(), 3u) << "and the legacy stream, which is made late";
  recording_.busy_streams.clear();
  streams_.Join();
  Create(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(recording_.calls.size(), 3u) << "nothing is left to wait for";
}

}  // namespace
}  // namespace worker
