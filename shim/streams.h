// The program's streams, what each of them is called in messages, and the numbers of their calls:
// marks, which the device writes into a stream's completion word (ipc/session_file.h).
//
// Thread safety: lookups are lock-free; a stream's sequence numbers belong to the client's send
// lock, because they must have the order of the ring.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <memory>

#include "ipc/calls/laneway_calls.h"
#include "shim/client.h"
#include "shim/handle_table.h"
#include "shim/objects.h"
#include "shim/thread_state.h"

namespace shim {

class Streams {
 public:
  static Streams& Process();

  // Those that the program made, and threads' own.
  HandleTable<Stream, ipc::HandleKind::kStream> table{ipc::limits::kStreamsMax -
                                                      ipc::limits::kLegacySlots};

  // The stream that the program means: 0 and the two special values as well. 400 for anything else.
  // Up to two messages go first: the StreamCreate of the thread's own stream, at its first use, and
  // the join that JoinBefore() sends. So the program's next call on the stream may follow.
  CUresult Use(CUstream program, const Context& context, uint64_t context_value, Stream** stream);
  // Sends a join when one is due (shim/arena/fences.h): the next call on the stream may use memory
  // that other streams used before the program freed that memory.
  static CUresult JoinBefore(const Stream& stream);
  // Everything sent later comes after everything sent so far, on all streams.
  static CUresult SendJoin(uint32_t wire);
  // With the calling thread's current context.
  CUresult UseCurrent(CUstream program, Stream** stream);
  Slot& SlotOf(const Stream& stream) { return slots_[stream.slot]; }
  // The stream's name in fences.
  static int32_t FenceSlot(const Stream& stream) { return static_cast<int32_t>(stream.slot); }
  Slot& SlotAt(uint32_t slot) { return slots_[slot]; }
  // The calling thread's own default stream in its current context, if it has been used; null
  // otherwise.
  Stream* KnownPerThread();
  Stream* Legacy(int device) { return &legacy_[device]; }
  // A new stream: named, known to the worker.
  CUresult Create(uint64_t context_value, unsigned flags, int priority, uint64_t* value);
  CUresult Destroy(uint64_t value);

  // Whether the slot's `covering` covers everything that was sent on the stream. On the legacy
  // stream any call of the session may have put something before it.
  bool IsClean(const Stream& stream);

  // REQUIRES: the send lock is held (inside a stage of the pipeline). Notes one more call on the
  // stream.
  void Touch(const Stream& stream) {
    Pipeline& pipeline = Client::Process().pipeline();
    SlotOf(stream).last_call.store(pipeline.submitted() + 1, std::memory_order_relaxed);
    pipeline.Touch(FenceSlot(stream));
  }
  // As Touch, also for a legacy stream.
  void TouchAny(const Stream& stream) {
    if (!stream.legacy) return Touch(stream);
    Client::Process().pipeline().Touch(Pipeline::kLegacyStream);
  }
  // REQUIRES: as above. The mark to send with a call on the stream that covers all before it,
  // itself included.
  ipc::Mark NextMark(const Stream& stream, bool wake);
  // REQUIRES: as above. The mark of a StreamMark that asks for a wake. A clean stream stays clean:
  // a query after the wait must not find this mark on its way.
  ipc::Mark NextWake(const Stream& stream);
  // REQUIRES: as above. The call that carried the last mark was not sent after all.
  void UndoMark();

 private:
  Streams();
  Stream* CreateOnIdleSlot(uint64_t* value);
  CUresult Resolve(CUstream program, const Context& context, uint64_t context_value,
                   Stream** stream);
  CUresult PerThread(const Context& context, uint64_t context_value, Stream** stream);
  static void EndThread(ThreadState& thread);

  Stream legacy_[ipc::limits::kLegacySlots];
  std::unique_ptr<Slot[]> slots_;
  struct {
    Slot* slot = nullptr;  // null: nothing to undo
    uint64_t sequence = 0;
    uint64_t covering = 0;
    uint64_t marked_at = 0;
  } last_mark_;  // under the send lock
};

// While one lives, stream 0 means the calling thread's own default stream: the entry points whose
// names end in _ptds and _ptsz.
class PerThreadDefault {
 public:
  PerThreadDefault();
  ~PerThreadDefault();
  PerThreadDefault(const PerThreadDefault&) = delete;
  static bool Active();

 private:
  const bool before_;
};

}  // namespace shim
