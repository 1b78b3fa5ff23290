#include "ipc/call_trace.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

#include "ipc/trace_switch.h"
#include "tests/harness/seed.h"

namespace ipc {
namespace {

constexpr uint32_t kTrack = 5;

class CallTraceTest : public ::testing::Test {
 protected:
  std::byte* area() { return words_.get(); }
  std::vector<TraceEvent> Take(TraceReader* reader, size_t events_max) {
    std::vector<std::byte> bytes;
    reader->TakeUntrusted(events_max, &bytes);
    std::vector<TraceEvent> events(bytes.size() / sizeof(TraceEvent));
    if (!bytes.empty()) std::memcpy(static_cast<void*>(events.data()), bytes.data(), bytes.size());
    return events;
  }
  TraceWords* words() { return reinterpret_cast<TraceWords*>(area()); }

  struct Free {
    void operator()(std::byte* area) const { std::free(area); }
  };
  // Zeros, as a session's file begins.
  std::unique_ptr<std::byte, Free> words_{[] {
    void* const made = std::aligned_alloc(4096, kTraceAreaBytes);
    std::memset(made, 0, kTraceAreaBytes);
    return static_cast<std::byte*>(made);
  }()};
};

TEST_F(CallTraceTest, EventsComeInOrderAndOnce) {
  std::mt19937_64 random(harness::Seed());
  TraceReader reader(area(), kTrack);
  TraceWriter writer(area(), kTrack, 77);
  uint64_t written = 0, read = 0;
  for (int round = 0; round < 2000; ++round) {
    for (uint64_t i = random() % 200; i != 0; --i) writer.Add({.amount = written++});
    for (const TraceEvent& event : Take(&reader, random() % 400)) EXPECT_EQ(event.amount, read++);
  }
  for (const TraceEvent& event : Take(&reader, kTrackEventsMax)) EXPECT_EQ(event.amount, read++);
  EXPECT_EQ(read, written);
  EXPECT_EQ(reader.lost_untrusted(), 0u);
  EXPECT_EQ(reader.thread_untrusted(), 77u);
}

// The bytes that a reader takes are those of the events, one after the other.
TEST_F(CallTraceTest, RecordsAreWholeOrNotThere) {
  std::mt19937_64 random(harness::Seed());
  TraceReader reader(area(), kTrack);
  TraceWriter writer(area(), kTrack, 77);
  std::vector<std::byte> written, read;
  uint64_t there = 0;
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> body(random() % (64u << 10));
    for (std::byte& byte : body) byte = static_cast<std::byte>(random());
    const uint64_t places = PlacesOfRecord(body.size());
    TraceEvent event{.kind = TraceKind::kSent, .slot = static_cast<uint32_t>(round)};
    ASSERT_EQ(writer.AddRecord(event, body), there + places <= kTrackEventsMax);
    if (there + places <= kTrackEventsMax) {
      there += places;
      event.amount = body.size();
      const std::byte* const first = reinterpret_cast<const std::byte*>(&event);
      written.insert(written.end(), first, first + sizeof event);
      body.resize((places - 1) * sizeof event);
      written.insert(written.end(), body.begin(), body.end());
    } else {
      ++refused;
    }
    if (random() % 8 != 0) continue;
    const size_t before = read.size();
    reader.TakeUntrusted(random() % (kTrackEventsMax / 2), &read);
    there -= (read.size() - before) / sizeof(TraceEvent);
  }
  reader.TakeUntrusted(kTrackEventsMax, &read);
  EXPECT_GT(refused, 0u);
  ASSERT_EQ(read.size(), written.size());
  for (size_t at = 0; at < read.size();) {
    TraceEvent event;
    std::memcpy(static_cast<void*>(&event), written.data() + at, sizeof event);
    const size_t bytes = sizeof event + event.amount;
    ASSERT_EQ(std::memcmp(read.data() + at, written.data() + at, bytes), 0) << "at " << at;
    at += PlacesOfRecord(event.amount) * sizeof event;
  }
  EXPECT_EQ(reader.lost_untrusted(), 0u) << "what is not written is for the writer to count";
}

TEST_F(CallTraceTest, AFullTrackLosesTheNewestAndCountsThem) {
  TraceReader reader(area(), kTrack);
  TraceWriter writer(area(), kTrack, 1);
  for (uint64_t i = 0; i < kTrackEventsMax + 10; ++i) writer.Add({.amount = i});
  writer.CountLost();
  EXPECT_EQ(reader.lost_untrusted(), 11u);
  const std::vector<TraceEvent> events = Take(&reader, 2 * kTrackEventsMax);
  ASSERT_EQ(events.size(), kTrackEventsMax);
  EXPECT_EQ(events.back().amount, kTrackEventsMax - 1);
  writer.Add({.amount = 99});
  EXPECT_EQ(Take(&reader, 10).size(), 1u) << "there is room again";
}

TEST_F(CallTraceTest, AnotherTraceBeginsWithNewEventsAlone) {
  TraceWriter writer(area(), kTrack, 1);
  writer.Add({.amount = 1});
  TraceReader reader(area(), kTrack);
  TraceWriter next(area(), kTrack, 2);  // of another worker, say
  next.Add({.amount = 2});
  const std::vector<TraceEvent> events = Take(&reader, 10);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].amount, 2u);
}

TEST_F(CallTraceTest, EachThreadHasATrackOfTheTrace) {
  for (uint32_t i = 0; i < kClientThreadsMax; ++i)
    EXPECT_EQ(ClaimTrack(area(), 3), kClientTracks + i);
  EXPECT_EQ(ClaimTrack(area(), 3), kTraceTracks);
  EXPECT_EQ(ThreadsUntrusted(area(), 3), kClientThreadsMax + 1);
  EXPECT_EQ(ThreadsUntrusted(area(), 4), 0u);
  EXPECT_EQ(ClaimTrack(area(), 4), kClientTracks) << "another trace";
}

TEST_F(CallTraceTest, LiesOfTheWriterYieldBytesAtMost) {
  TraceReader reader(area(), kTrack);
  for (const uint64_t head : {UINT64_MAX, uint64_t{1} << 40, kTrackEventsMax + 1}) {
    words()->tracks[kTrack].head.store(head);
    EXPECT_LE(Take(&reader, 100).size(), 100u);
    EXPECT_LE(Take(&reader, SIZE_MAX).size(), kTrackEventsMax);
  }
}

TEST_F(CallTraceTest, LiesOfTheReaderCostEventsAtMost) {
  TraceWriter writer(area(), kTrack, 1);
  words()->tracks[kTrack].tail.store(UINT64_MAX / 2);
  writer.Add({});
  EXPECT_EQ(words()->tracks[kTrack].lost.load(), 1u);
}

TEST(TraceNumberTest, WhoeverFindsTheTimeOverEndsTheTrace) {
  TraceSwitch trace{};
  EXPECT_EQ(TraceNumber(&trace, 100), 0u);
  trace.until_ns.store(100);
  trace.number.store(7);
  EXPECT_EQ(TraceNumber(&trace, 100), 7u);
  EXPECT_EQ(TraceNumber(&trace, 101), 0u);
  EXPECT_EQ(trace.number.load(), 0u);
}

}  // namespace
}  // namespace ipc
