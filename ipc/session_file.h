// The shared file of one session: what client and worker both map.
//
//     SessionPage | completion words | ring client->worker | ring worker->client | staging |
//     results | prints | chunks | verdicts | trace
//
// lanewayd creates it (a sealed-size memfd), gives it to the worker and to the client as a
// descriptor, and keeps only its first page. Nobody holds a lock in it, so a side that dies leaves
// nothing to repair.
//
// Everything in it can be written by the client, at any time. So worker and lanewayd keep by
// themselves what others depend on. What they believe of the words here:
//
//     magic, slot, ids,    Nothing after the file was made. A next worker checks the magic.
//     call_token
//     loss, loss_text      Nothing: they tell the client. Whether a session is lost is a word of
//                          its worker (SessionLife::Lose) and of lanewayd (Session::phase). A
//                          client that writes loss ends its own session.
//     doorbells, sleeping  Nothing: every wait has a bound. A ring for nothing makes the client's
//                          own thread look.
//     ring positions       Each side keeps its own and clamps the other's (ipc/ring.h).
//     messages, chunks,    Messages are copied before they are looked at, from the ring and from
//     staging              the chunk area alike; staging is bytes.
//     generation, moving   Nothing: lanewayd writes them and keeps the generation in its record.
//     acknowledged,        Of a session that has moved, that its ring is in order. A lie costs the
//     replaying            client its own objects.
//     quiet_position       Nothing while the worker lives, which keeps its own word of it. When it
//                          is gone, lanewayd moves a session that looks quiet. A lie costs the
//                          client what was in flight.
//     obstacles            A client that hides an obstacle is rebuilt without the hidden state.
//     lane_blocks          When they are gone, the lane may be the next session's, after all work
//                          on the device. A lie costs the client what lies there.
//     completed            Nothing.
//     acknowledged[]       The device waits for them, in the session's own streams.
//     fetched, results,    Nothing: they are for the client.
//     async_error, prints
//     verdicts             What replay has gained, for the next starts. A lie costs the user's
//                          programs time.
//     trace switch, area   Whether events are written there. A lie costs the session's own time.
//     progress, counts,    For people and statistics. The scheduler takes from progress how long a
//     iteration_times      session held its lane: never more than the time that has passed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "ipc/call_trace.h"
#include "ipc/channel.h"
#include "ipc/iteration_times.h"
#include "ipc/print_area.h"
#include "ipc/ring.h"
#include "ipc/verdict_area.h"

namespace ipc {

inline constexpr uint32_t kSessionMagic = 0x4c4e5731;  // "LNW1"
inline constexpr size_t kLossTextBytes = 1024;

// What a session's thread in the worker waits for.
enum class WaitState : uint32_t {
  kNothing = 0,
  kTurn,     // another session holds its lane
  kMemory,   // persistent memory that others hold
  kLane,     // a lane that is large enough
  kPaused,   // until it is resumed
  kSwapped,  // its memory is on its way between device and host
};

// How far a session is: read by lanewayd, which needs no message per iteration. A worker writes it
// where its client can't (daemon/common/progress_map.h). A program with a context of its own writes
// it into its page, and speaks for itself alone. Times are CLOCK_MONOTONIC.
struct Progress {
  std::atomic<uint64_t> iterations;         // boundaries passed
  std::atomic<uint64_t> held_us;            // time with its lane, up to the last boundary
  std::atomic<uint64_t> last_iteration_us;  // between the last two boundaries, less waiting
  std::atomic<uint64_t> boundary_us;        // when the last one was passed; 0: none yet
  std::atomic<uint64_t> persistent_bytes;
  std::atomic<uint64_t> ephemeral_bytes;  // the most that an iteration needed
  std::atomic<uint64_t> wait_since_us;
  std::atomic<WaitState> wait;
};

// What stands against rebuilding a session in another worker: bits of SessionPage::obstacles, shown
// by `laneway ps`. The worker sets and clears the first two, kArrays and kSharedMemory, the
// client sets the others.
enum Obstacle : uint32_t {
  kModuleState = 1,      // a module has state that nobody else keeps: device variables, a heap
  kUnknownImage = 2,     // an image that cannot be looked into for such state
  kLogTooLong = 4,       // more objects or images live than the client keeps
  kWrittenVariable = 8,  // the host wrote a module's variable in a way that the client can't repeat
  kArrays = 32,          // it has arrays, textures or surfaces
  kSharedMemory = 64,    // it shares memory with other sessions
  kCapturedLibrary = 16,  // a graph has a library's work, made with what is gone or changed since
};

// What the worker counts of replay (docs/replay.md), for people. `mismatch` is written before the
// count that tells of it.
struct ReplayCounts {
  std::atomic<uint64_t> launches;  // of kernels, through messages
  std::atomic<uint64_t> replayed;  // of these, as parts of graphs
  std::atomic<uint64_t> verified;  // of these, executed both ways
  std::atomic<uint64_t> mismatches;
  char mismatch[96];  // the kernel whose results differed last, zero-terminated
};

// The name under which a client speaks over ZeroMQ (ipc/zmq_channel.h): random, and read by the
// worker before the client has the file.
using CallToken = std::array<std::byte, 32>;

// Written by the worker, for status. Informative only.
struct WorkerCounts {
  std::atomic<uint64_t> ops_received;  // calls
  std::atomic<uint64_t> array_bytes;   // of arrays, which no keeper counts
};

struct SessionPage {
  uint32_t magic;
  uint32_t protocol_version;
  uint64_t session_id;
  uint32_t slot;        // addresses: limits::kSlotBase + slot * limits::kSlotBytes
  uint32_t worker_pid;  // a client that waits long checks that it lives
  CallToken call_token;

  // 0 while the session lives. Then the CUresult that every later call gets: the session's own
  // fault (700, ...), 806 when the worker is lost or was poisoned by another, 3 in a forked child.
  // Written once, by whoever notices first (worker or lanewayd), after loss_text; then both
  // doorbells ring. It only tells the client.
  alignas(64) std::atomic<uint32_t> loss;
  std::atomic<uint32_t> loss_text_ready;
  // Grows when another worker has taken the session over (lanewayd writes it, then rings the
  // client's doorbell). The client puts its ring in order, replays what lives, and acknowledges.
  std::atomic<uint32_t> generation;

  // The first failure of a queued call that the client's own checks did not foresee: a CUresult, or
  // 0. The client exchanges the code for 0 and returns the code where CUDA surfaces asynchronous
  // errors.
  std::atomic<uint32_t> async_error;

  // The client sleeps here for replies and for completions; the worker's session thread for
  // requests.
  alignas(64) std::atomic<uint32_t> client_doorbell;
  alignas(64) std::atomic<uint32_t> worker_doorbell;

  RingWords to_worker;
  RingWords to_client;

  // --- moving between workers (docs/recovery.md)
  // Written by the worker: the position of to_worker up to which everything taken is complete on
  // the device. Equal to the tail: nothing is in flight, and the worker's loss loses nothing.
  alignas(64) std::atomic<uint64_t> quiet_position;
  std::atomic<uint32_t> acknowledged;  // client: the generation that the ring is in order for
  std::atomic<uint32_t> replaying;     // client: 1 while only its replay is in the ring
  std::atomic<uint32_t> moving;        // lanewayd: 1 while the session is between two workers
  std::atomic<uint32_t> obstacles;     // Obstacle bits
  std::atomic<uint64_t> fetched;       // worker: the ticket of the last FetchAhead that copies

  // Written by the client: how many blocks of its iteration live in the lane. A block is counted
  // before the first call that uses it, and until after the last one.
  alignas(64) std::atomic<uint32_t> lane_blocks;

  alignas(64) WorkerCounts counts;
  ReplayCounts replay;

  // How long iterations take, for people and for what is learned about a command.
  alignas(64) IterationTimes iteration_times;

  alignas(64) Progress progress;

  char loss_text[kLossTextBytes];  // one sentence for stderr, zero-terminated
};

// The last ticket that a client may use, and the word that satisfies them all. The device compares
// cyclically (CU_STREAM_WAIT_VALUE_GEQ in the driver's manual), so half of the numbers are left.
inline constexpr uint64_t kEveryTicket = INT64_MAX;

// One pair of words per client stream (its slot number; slot 0 is the legacy default stream).
// completed: the sequence number of the last finished mark; the device writes it in stream order
// and the
//   client compares. 0: nothing finished yet. Sequences of a slot only grow.
// acknowledged: the ticket of the last host function that the client has run; a held stream waits
//   for it. The client writes it. When the client is gone the worker writes kEveryTicket.
struct CompletionWords {
  std::atomic<uint64_t> completed[limits::kStreamsMax];
  std::atomic<uint64_t> acknowledged[limits::kStreamsMax];
};

// Small host-side results (cuBLAS dot, nrm2, ... under host pointer mode), by client-chosen index.
inline constexpr size_t kResultBytes = 64u << 10;

inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kCompletionOffset = kPageBytes;
inline constexpr size_t kToWorkerOffset = kCompletionOffset + sizeof(CompletionWords);
inline constexpr size_t kToClientOffset = kToWorkerOffset + limits::kRingBytes;
inline constexpr size_t kStagingOffset = kToClientOffset + limits::kRingBytes;
inline constexpr size_t kResultOffset = kStagingOffset + limits::kStagingBytes;
inline constexpr size_t kPrintOffset = kResultOffset + kResultBytes;
inline constexpr size_t kChunkOffset =
    (kPrintOffset + sizeof(PrintArea) + kPageBytes - 1) / kPageBytes * kPageBytes;
inline constexpr size_t kVerdictOffset = kChunkOffset + limits::kChunkAreaBytes;
inline constexpr size_t kTraceOffset =
    (kVerdictOffset + sizeof(VerdictArea) + kPageBytes - 1) / kPageBytes * kPageBytes;
// What has memory from the beginning, and is known to the driver: all before the trace area.
inline constexpr size_t kSessionMemoryBytes = kTraceOffset;
inline constexpr size_t kSessionFileBytes = kTraceOffset + kTraceAreaBytes;
static_assert(kTraceOffset % kPageBytes == 0);
static_assert(sizeof(SessionPage) <= kPageBytes && kToWorkerOffset % kPageBytes == 0);

class SessionFile {
 public:
  // Creates the memfd and fills the page's identity. ResourceExhausted when there is no memory for
  // it.
  static absl::StatusOr<int> Create(uint64_t session_id, uint32_t slot);

  // Maps the whole file; does not take over fd. InvalidArgument when it is not a session file of
  // this protocol version (size, magic, version).
  static absl::StatusOr<SessionFile> Map(int fd);

  SessionFile(SessionFile&& other) noexcept;
  SessionFile& operator=(SessionFile&& other) noexcept;
  SessionFile(const SessionFile&) = delete;
  ~SessionFile();

  SessionPage* page() const { return reinterpret_cast<SessionPage*>(base_); }
  CompletionWords* completions() const {
    return reinterpret_cast<CompletionWords*>(base_ + kCompletionOffset);
  }
  std::byte* staging() const { return base_ + kStagingOffset; }
  std::byte* results() const { return base_ + kResultOffset; }
  PrintArea* prints() const { return reinterpret_cast<PrintArea*>(base_ + kPrintOffset); }
  // limits::kChunkAreaBytes: runs of messages that the client sends again (ipc/chunks).
  std::byte* chunks() const { return base_ + kChunkOffset; }
  VerdictArea* verdicts() const { return reinterpret_cast<VerdictArea*>(base_ + kVerdictOffset); }
  // kTraceAreaBytes: has memory only while the session is traced.
  std::byte* trace_area() const { return base_ + kTraceOffset; }
  // kSessionMemoryBytes from here are for cuMemHostRegister; page-aligned.
  std::byte* base() const { return base_; }

  // The ring channel of either side. The file must outlive it.
  Channel ClientChannel() const;
  Channel WorkerChannel() const;

 private:
  SessionFile() = default;
  std::byte* base_ = nullptr;
  std::byte* to_worker_ = nullptr;  // double mappings
  std::byte* to_client_ = nullptr;
};

// Tells the client that its session is lost, and wakes both sides. The first caller's code and text
// win. What is to end for it, its owner ends by itself: a client may keep this word from being
// written.
void MarkLost(SessionPage* page, uint32_t code, const char* text);

}  // namespace ipc
