// The events of `laneway trace JOB --calls`: what client, worker and device did, and when.
//
// The trace area is the last part of a session's file, and has memory only while the session is
// traced. lanewayd reserves that memory and sets the session's switch (ipc/trace_switch.h). From
// then on each thread of the client writes its calls and its waits into a track of its own. The
// session's thread in the worker writes what the thread serves and waits for into kWorkerTrack, and
// when the device did the work into kDeviceTrack. lanewayd takes the events from all tracks.
//
// A track is a ring of events with one writer and one reader. An event that finds the ring full is
// counted as lost.
//
// Two tracks more hold records (ipc/work_records.h): an event, and bytes in the places of the
// events after it. The worker writes the names of the kernels that are launched. A trace in detail
// (TraceSwitch::details), for `laneway graph` and `laneway kernels JOB`, tells what the client
// sends and the images that the worker has loaded. While a session is traced in detail, the client
// sends its messages one by one.
//
// Everything here can be written by the client at any time. A writer keeps its own position and
// never uses a word as an index; lanewayd copies bytes and looks at none of them; the command
// checks each event (cli/call_events.h).
//
// Thread safety: a TraceWriter belongs to one thread, a TraceReader as well.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ipc {

enum class TraceKind : uint16_t {
  kCall = 1,   // client: one call of the program; `op`
  kWait,       // client: for a stream's completion word; `slot`; amount 1: it slept
  kReplyWait,  // client: for an answer of the worker
  kRepeat,     // client: a chunk was sent again; `amount` messages
  kServe,      // worker: one message; `op`, and `slot` where the call names a stream; `amount`: of
               // a launch, the number of its kernel's name
  kReplay,     // worker: `amount` launches as one graph; `slot`
  kPark,       // worker: for a turn, memory, ...; `amount` is a WaitState
  kDevice,     // device: what the message `op` gave it; `slot`; `amount`: AmountOf(DeviceWork)
  kSent,       // client, a record: one message in detail (ipc/work_records.h); `op`, `slot`
  kWaited,     // client, a record: the program has waited for the device
  kImage,      // worker, a record: a part of a module's image
  kKernel,     // worker, a record: the name of a kernel (ipc/work_records.h)
};
inline constexpr uint16_t kTraceKinds = 12;

inline constexpr uint32_t kTraceTracks = 18;           // of a session
inline constexpr uint64_t kTrackEventsMax = 1u << 15;  // that wait to be taken

// No stream.
inline constexpr uint32_t kNoTraceSlot = UINT32_MAX;

// Times are CLOCK_MONOTONIC.
struct TraceEvent {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  TraceKind kind = TraceKind::kCall;
  uint16_t op = 0;  // ipc::Op
  uint32_t slot = kNoTraceSlot;
  uint64_t amount = 0;
};
static_assert(sizeof(TraceEvent) == 32);

// The places in the area that an event with so many bytes takes.
constexpr uint64_t PlacesOfRecord(uint64_t bytes) {
  return 1 + (bytes + sizeof(TraceEvent) - 1) / sizeof(TraceEvent);
}

// The device's work for one message, as TraceEvent::amount of kDevice packs it.
struct DeviceWork {
  uint32_t record = 0;    // number of the message's record (ipc/work_records.h); 0: no details
  uint32_t launches = 0;  // replayed as one graph, at most 2^31 - 1; 0: none
  uint32_t kernel = 0;    // the number of its name, of one launch, in the same range; 0: not told
};
inline constexpr uint32_t kNamesKernel = 1u << 31;  // in the lower half, beside the number

constexpr uint64_t AmountOf(const DeviceWork& work) {
  const uint32_t lower = work.kernel == 0 ? work.launches : work.kernel | kNamesKernel;
  return uint64_t{work.record} << 32 | lower;
}
constexpr DeviceWork DeviceWorkIn(const TraceEvent& device) {
  const uint32_t lower = static_cast<uint32_t>(device.amount);
  DeviceWork work{.record = static_cast<uint32_t>(device.amount >> 32)};
  ((lower & kNamesKernel) != 0 ? work.kernel : work.launches) = lower & ~kNamesKernel;
  return work;
}

// One cache line per writer.
struct TraceTrack {
  alignas(64) std::atomic<uint64_t> head;  // events written
  std::atomic<uint64_t> lost;
  std::atomic<uint32_t> thread;            // the writer's, as the system numbers threads
  alignas(64) std::atomic<uint64_t> tail;  // events taken
};

struct TraceWords {
  // Which trace the client's tracks belong to (upper half), and how many threads asked for one.
  std::atomic<uint64_t> claims;
  TraceTrack tracks[kTraceTracks];
};

inline constexpr uint32_t kWorkerTrack = 0;
inline constexpr uint32_t kDeviceTrack = 1;
inline constexpr uint32_t kSentTrack = 2;     // records; its writer is whoever sends
inline constexpr uint32_t kImageTrack = 3;    // records of the session's thread in the worker: of
                                              // kernels' names, and in detail of images instead
inline constexpr uint32_t kClientTracks = 4;  // from here on
inline constexpr uint64_t kTraceRingBytes = kTrackEventsMax * sizeof(TraceEvent);
inline constexpr uint64_t kTraceWordsBytes = 4096;
static_assert(sizeof(TraceWords) <= kTraceWordsBytes);
inline constexpr uint64_t kTraceAreaBytes = kTraceWordsBytes + kTraceTracks * kTraceRingBytes;

class TraceWriter {
 public:
  TraceWriter() = default;
  // Goes on where the track's last writer stopped. The area outlives this object.
  TraceWriter(std::byte* area, uint32_t track, uint32_t thread);

  void Add(const TraceEvent& event);
  // Adds a record: the event, whose amount becomes the size of `bytes`, and the bytes. False: it
  // finds no room, and nothing was written or counted.
  bool AddRecord(TraceEvent event, std::span<const std::byte> bytes);
  // An event could not be made.
  void CountLost();

 private:
  TraceTrack* words_ = nullptr;
  TraceEvent* ring_ = nullptr;
  uint64_t head_ = 0;
};

// Threads of the client for which there are tracks.
inline constexpr uint32_t kClientThreadsMax = kTraceTracks - kClientTracks;

// A track of the client's for a thread that has none in trace `number`; kTraceTracks: all are
// taken.
uint32_t ClaimTrack(std::byte* area, uint32_t number);

// How many threads have asked for a track in trace `number`, as the client says.
uint32_t ThreadsUntrusted(const std::byte* area, uint32_t number);

class TraceReader {
 public:
  // What was written before is not read.
  TraceReader(std::byte* area, uint32_t track);

  // Appends the bytes of up to `events_max` events, oldest first, and makes room for as many.
  void TakeUntrusted(size_t events_max, std::vector<std::byte>* bytes);
  // Events that were lost, and the writer's thread, as the writer says.
  uint64_t lost_untrusted() const;
  uint32_t thread_untrusted() const { return words_->thread.load(std::memory_order_relaxed); }

 private:
  TraceTrack* words_;
  const std::byte* ring_;
  uint64_t tail_ = 0;
  uint64_t lost_before_ = 0;
};

}  // namespace ipc
