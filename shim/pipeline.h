// How one call of the program becomes messages to the worker. A call is an Outgoing: a value, whose
// making locks and sends nothing. Pipeline::Send passes the call through these stages under the
// send lock. So all threads' calls have one order, the order of the ring:
//
//   Detect    asks the detector of iterations for the call's operation (shim/iterations).
//   Boundary  sends the messages before an iteration's first operation: LaneKeep and ArenaUnmap of
//             memory, then Boundary.
//   Fold      says whether the message may wait for more of a run that the session sends again
//             (shim/chunk_sender.h). A session with replay alone.
//   Encode    waits for room in the channel, takes numbers that have the order of the ring, writes
//             the message into the room.
//   Detail    writes what is sent into the session's trace, while that is one in detail
//             (shim/work_details.h).
//   Record    files the message in the log for the next worker (shim/rebuild/log.h).
//   Commit    hands the message to the worker, and counts the message.
//
// A stage is a private method that takes the Outgoing; Detail and the recorder, which need nothing
// else of the pipeline, are functions. Facts for later stages are members of Outgoing, below "what
// the stages have found".
//
// To add a stage, declare a method beside the others, with REQUIRES(mutex_), and call the method in
// Send at its place; a stage that must see the pipeline's own messages is called in SendOwn, too.
// The recorder of functions (shim/recording) stands beside Record: there `values` are the call's
// arguments, `operation` and `boundary` place the call in its iteration, and `room` is the encoded
// message.
// A stage that replaces calls (replay of iterations that repeat) stands between Boundary and
// Encode, where the channel holds nothing of the call: the stage sends its own messages by SendOwn,
// and returns true from Send before Encode to drop the call, as Note does.
//
// Every call of the program comes through here: a stage allocates nothing, and calls what is
// virtual only where the codec, the channel, or an iteration's end needs it.
//
// Thread safety: all methods from any thread, but those that REQUIRE the send lock: they are for
// what runs inside a stage (Preparation, ipc::Caller) or holds lock().
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/mutex.h"
#include "ipc/calls/laneway_calls.h"
#include "ipc/codec_client.h"
#include "ipc/ring.h"
#include "ipc/session_file.h"
#include "shim/arena/fences.h"
#include "shim/boundary.h"
#include "shim/chunk_sender.h"
#include "shim/iterations/iterations.h"
#include "shim/known_message.h"
#include "shim/lock_order.h"
#include "shim/rebuild/log.h"
#include "shim/replay_control.h"
#include "shim/replies.h"
#include "shim/upkeep.h"

namespace shim {

namespace recording {
class Recorder;
}

// Decides what must have the order of the ring: runs under the send lock, in room that is there,
// just before the arguments are encoded.
struct Preparation {
  // False: a handle is gone, and nothing was changed. Null: nothing to decide.
  bool (*decide)(void*) = nullptr;
  void* argument = nullptr;
  // Takes back what was decided, when the call is refused after all. Null: nothing to take back.
  void (*undo)() = nullptr;
};

struct Outgoing {
  // Not an aggregate: the compiler clears the whole of one before it sets the members, which costs
  // every call more than a copy of its arguments.
  Outgoing(ipc::Op op, uint32_t context, ipc::Values values)
      : op(op), context(context), values(values) {}

  // --- the call
  ipc::Op op;
  uint32_t context;               // MessageHeader::context
  ipc::Values values;             // as the codec takes them; null: the row has no parameters
  PendingReply* reply = nullptr;  // where its reply goes; null: the program waits for none
  bool wants_reply = false;       // the worker answers
  // The piece of a graph that the worker captures this call into; 0: none. Such a call is no work.
  uint64_t capture = 0;
  Preparation prepare;
  // Null: each message of the call is another. Otherwise the pipeline learns the message, for
  // SendKnown. For calls that want no reply, that the log does not keep, and that are never
  // captured.
  KnownMessage* learned = nullptr;

  // --- what the stages have found
  std::optional<iterations::Op> operation;    // Detect: what it is; none: no work of the device
  std::optional<ipc::BoundaryInfo> boundary;  // Detect: an iteration ends before it
  std::span<std::byte> room;                  // Encode: in the channel; then the message itself
  ipc::Encoded encoded;                       // Encode; `refusal` says why nothing was sent
  CUresult failure = CUDA_SUCCESS;            // Encode: of the session; nothing was sent
  RebuildLog::Token token = RebuildLog::kNoToken;  // Record: of the note in the log
};

class Pipeline {
 public:
  // What the messages go into, and what the stages ask. All of it outlives the pipeline.
  struct Ends {
    ipc::Sender* sender = nullptr;
    ipc::RingSender* ring = nullptr;  // below it, where it is a ring; null: nothing is recorded
    ChunkSender* chunks = nullptr;    // the sender, where runs are sent as chunks
    ipc::ReplayMode replay;           // when they are
    ipc::VerdictArea* verdicts = nullptr;  // what earlier starts found out of that; null: nothing
    BodyNamer* namer = nullptr;            // where there are verdicts
    ipc::SessionPage* page = nullptr;
    uint64_t arena_base = 0;  // of the session
    ipc::Caller* caller = nullptr;
    iterations::Iterations* iterations = nullptr;
    MemoryAtBoundary* memory = nullptr;
    RebuildLog* log = nullptr;
    Replies* replies = nullptr;
    Upkeep* upkeep = nullptr;
    recording::Recorder* recorder = nullptr;  // null: no function is recorded
  };

  Pipeline();
  // REQUIRES: once, before any other method.
  void Open(const Ends& ends);

  // True: the call is with the worker, or on its way there; its reply comes to Outgoing::reply.
  // False: nothing of it was sent (a boundary before it may have been), `failure` or
  // `encoded.refusal` says why.
  bool Send(Outgoing* call) EXCLUDES(mutex_);
  // The same for a message that is known, without what is done already: the stages Encode, Detail
  // and Record, and most of Detect. Nothing is prepared but the message's end, which `write_end`
  // writes in the order of the ring. REQUIRES: the message is known, and no function is recorded.
  CUresult SendKnown(ipc::Op op, uint32_t context, const KnownMessage& message,
                     KnownMessage::WriteEnd write_end, void* argument) EXCLUDES(mutex_);
  // For a call whose effect is here already: as Send, but the call itself is not sent. Iterations
  // are found in what the program does.
  CUresult Note(Outgoing* call) EXCLUDES(mutex_);
  // Everything that was sent is on its way: a thread is about to wait for the device, or to tell
  // the worker something beside the channel. A run ends here, so that the runs of equal iterations
  // are equal.
  void Flush() EXCLUDES(mutex_) {
    if (ends_.chunks != nullptr && ends_.chunks->in_run()) FlushHeld();
  }
  // Whether messages of the session are held back.
  bool Holds() const { return ends_.chunks != nullptr && ends_.chunks->holds(); }

  // Grows with every message sent: what was submitted before it has a smaller number.
  uint64_t submitted() const { return submitted_.load(std::memory_order_relaxed); }
  // The last of them that was more than a question how far the device is.
  uint64_t last_work() const { return last_work_.load(std::memory_order_relaxed); }
  // How many calls were work for the device, in the sense of shim/iterations.
  uint64_t operations() const { return operations_.load(std::memory_order_relaxed); }

  // What orders memory that is used again.
  arena::Fences& fences() { return fences_; }
  // Everything sent before `look` was taken is complete (slot: on this stream alone).
  void AfterWait(uint64_t look, int32_t slot) EXCLUDES(mutex_);
  // The message being encoded goes to the stream with this slot; kLegacyStream: to the legacy
  // stream of its device. REQUIRES: the send lock, which the codec's interfaces between here and
  // Encode do not know.
  static constexpr int32_t kLegacyStream = -2;
  void Touch(int32_t slot) {
    mutex_.AssertHeld();
    touched_ = slot;
  }

  // --- when another worker takes the session over
  // Which worker the messages go to: grows with each that takes the session over.
  uint32_t generation() const { return generation_.load(std::memory_order_acquire); }
  // Whether the page names a worker that was not told of the session yet.
  bool Displaced() const {
    return ends_.page->generation.load(std::memory_order_relaxed) !=
           generation_.load(std::memory_order_relaxed);
  }
  // The send lock, for what writes into the channel beside the pipeline (shim/rebuild).
  base::Mutex& lock() RETURN_CAPABILITY(mutex_) { return mutex_; }
  void SetGeneration(uint32_t generation) REQUIRES(mutex_) {
    generation_.store(generation, std::memory_order_release);
  }
  uint32_t NextRequest() REQUIRES(mutex_);

 private:
  // The stages. Inline, because every call passes them: what is rare is in the functions below.
  [[gnu::always_inline]] inline void Detect(Outgoing* call) REQUIRES(mutex_);
  [[gnu::always_inline]] inline void Boundary(const Outgoing& call) REQUIRES(mutex_);
  [[gnu::always_inline]] inline void Fold(const Outgoing& call, size_t body_bytes_max)
      REQUIRES(mutex_);
  [[gnu::always_inline]] inline bool Encode(size_t body_bytes_max, Outgoing* call) REQUIRES(mutex_);
  [[gnu::always_inline]] inline void Record(Outgoing* call) REQUIRES(mutex_);
  [[gnu::always_inline]] inline void Commit(ipc::Op op, uint32_t context, size_t bytes)
      REQUIRES(mutex_);

  // Empty: the session is lost.
  [[gnu::always_inline]] inline std::span<std::byte> MakeRoom(size_t bytes_max) REQUIRES(mutex_);
  std::span<std::byte> MakeRoomSlowly(size_t bytes_max) REQUIRES(mutex_);
  void EndIteration(ipc::BoundaryInfo info, uint32_t context) REQUIRES(mutex_);
  void FlushHeld() EXCLUDES(mutex_);
  // A message of the pipeline's own, from inside a stage; it passes Encode, Record and Commit.
  void SendOwn(ipc::Op op, uint32_t context, ipc::Values values, bool wants_reply) REQUIRES(mutex_);

  Ends ends_;
  KeptVerdicts verdicts_;
  ReplayControl replay_;
  std::atomic<uint32_t> generation_{0};  // written under mutex_
  // The send lock.
  base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kSending) ACQUIRED_BEFORE(lock_order::kKeeping);
  uint32_t last_request_ GUARDED_BY(mutex_) = 0;
  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> last_work_{0};
  std::atomic<uint64_t> operations_{0};
  arena::Fences fences_;
  int32_t touched_ GUARDED_BY(mutex_) = arena::kAnyStream;  // by the message under way
  uint64_t stop_at_ = 0;                                    // LANEWAY_TEST_STOP_AT
};

}  // namespace shim
