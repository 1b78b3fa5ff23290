// What the client knows about the program's driver objects, so that most calls need no answer:
// contexts, streams, events, modules, functions, allocations, devices.
//
// Thread safety: lookups are lock-free; a stream's sequence numbers belong to the client's send
// lock (they must have the order of the ring); everything else has its own lock, said beside it.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ipc/calls/laneway_calls.h"
#include "shim/arena/persistent.h"
#include "shim/arena/sites.h"
#include "shim/client.h"
#include "shim/handle_table.h"
#include "shim/thread_state.h"

namespace shim {

struct Context {
  uint32_t wire = 0;  // MessageHeader::context
  int device = 0;
  bool primary = false;
  std::atomic<bool> active{true};  // a primary context: retained
  std::atomic<unsigned> flags{0};
  unsigned api_version = 0;
  std::atomic<int> attached{1};  // cuCtxAttach, cuCtxDetach
  std::atomic<uint64_t> id{0};
  std::atomic<const ipc::DeviceInfo*> info{nullptr};  // fetched at the first launch
};

struct Stream {
  uint32_t slot = 0;
  uint64_t value = 0;    // what messages carry; 0: the legacy stream
  uint64_t context = 0;  // 0: a legacy stream, any context of its device
  uint32_t wire = 0;     // MessageHeader::context
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  bool legacy = false;
  bool made = false;  // the fields above are set; a walk of another thread skips it before

  void SetMade() { std::atomic_ref<bool>(made).store(true, std::memory_order_release); }
  bool IsMade() { return std::atomic_ref<bool>(made).load(std::memory_order_acquire); }
};

// Counters of a completion slot; they outlive its streams. Written under the send lock.
struct Slot {
  std::atomic<uint64_t> sequence{0};  // the last one given
  // The mark that covers everything sent on the stream so far, if clean (State::IsClean).
  std::atomic<uint64_t> covering{0};
  std::atomic<uint64_t> last_call{0};  // Client::submitted() when the stream was last used
  std::atomic<uint64_t> marked_at{0};  // Client::submitted() when `covering` was sent
  std::atomic<int> device{-1};         // of the streams that used it; -1: none yet
  std::atomic<uint32_t> calls{0};      // counted by Throttle (sync.h)
  std::atomic<uint64_t> gate{0};       // Throttle's last mark
  uint64_t ticket = 0;                 // of host functions
};

struct Event {
  unsigned flags = 0;
  uint64_t context = 0;
  uint32_t wire = 0;
  int device = 0;
  // slot << 48 | sequence of the last record; 0: never recorded (a slot's sequences begin at 1).
  std::atomic<uint64_t> recorded{0};
  std::atomic<bool> captured{false};  // the last record was in a capture (graphs/capture.h)
};

// A part of an executable graph that the worker has (graphs/pieces.h).
struct GraphPiece {
  uint64_t context = 0;
  uint32_t wire = 0;
  mutable std::mutex mutex;
  std::vector<uint64_t> modules;  // of its kernels
};

struct Module {
  uint64_t context = 0;
  uint32_t wire = 0;
  int device = 0;
  std::mutex mutex;  // of `functions`
  std::map<std::string, uint64_t, std::less<>> functions;
};

struct Function {
  std::string name;
  uint64_t module = 0;
  uint64_t context = 0;
  uint32_t wire = 0;
  ipc::FunctionInfo info;
  std::vector<ipc::ParamLayout> params;
  std::mutex attributes_mutex;  // info.attributes change by cuFuncSetAttribute
};

struct Allocation {
  enum class Kind : uint8_t { kDevice, kPinned, kRegistered, kVariable };
  Kind kind = Kind::kDevice;
  uint64_t base = 0;
  uint64_t bytes = 0;
  uint64_t context = 0;
  int device = 0;
  unsigned flags = 0;  // of cuMemHostAlloc, cuMemHostRegister
  uint64_t id = 0;     // CU_POINTER_ATTRIBUTE_BUFFER_ID
  // Where it lies, for DeviceMemory (shim/device_memory.h).
  arena::Persistent::Block block;
  bool ephemeral = false;
  uint64_t pool = 0;  // the program's name of the pool it is from; 0: none
  uint64_t birth = arena::Sites::kNoBirth;
};

// Ranges by address. Thread safety: all methods.
class Allocations {
 public:
  // Under an id of its own, whatever it says.
  void Add(const Allocation& allocation);
  // The one that holds `address`.
  bool Find(uint64_t address, Allocation* found) const;
  // Removes the one that begins at `base` and is of this kind.
  bool Remove(uint64_t base, Allocation::Kind kind, Allocation* removed);
  std::vector<Allocation> OfContext(uint64_t context) const;
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  static constexpr size_t kSpareMax = 16;
  mutable std::mutex mutex_;
  std::map<uint64_t, Allocation> by_base_;
  std::vector<std::map<uint64_t, Allocation>::node_type> spare_;  // an allocation makes no node
  uint64_t last_id_ = 0;
  std::atomic<size_t> count_{0};
};

class State {
 public:
  static State& Process();

  HandleTable<Context, ipc::HandleKind::kContext> contexts{1u << 16};
  HandleTable<Stream, ipc::HandleKind::kStream> streams{ipc::limits::kStreamsMax -
                                                        ipc::limits::kLegacySlots};
  HandleTable<Event, ipc::HandleKind::kEvent> events;
  HandleTable<Module, ipc::HandleKind::kModule> modules;
  HandleTable<Function, ipc::HandleKind::kFunction> functions;
  HandleTable<GraphPiece, ipc::HandleKind::kGraphExec> graph_pieces;
  Allocations allocations;
  Allocations variables;  // of modules: they may lie outside the session's slot

  // --- contexts
  // The calling thread's current context: 3, a sticky code, 201 (none) or 709 (destroyed).
  CUresult Current(Context** context, uint64_t* value = nullptr);
  // The device of the current context's messages, without a context: for calls that name a device.
  static uint32_t WireOfDevice(int device) { return static_cast<uint32_t>(device) + 1; }

  // --- streams
  // The stream that the program means: 0 and the two special values as well. 400 for anything else.
  // Up to two messages go first: the StreamCreate of the thread's own stream, at its first use, and
  // the join that JoinBefore() sends. So the program's next call on the stream may follow.
  CUresult UseStream(CUstream program, const Context& context, uint64_t context_value,
                     Stream** stream);
  // The next call on the stream may use memory that other streams used before it was freed: sends
  // the join that orders them, when one is due (shim/arena/fences.h).
  static CUresult JoinBefore(const Stream& stream);
  // Everything sent later comes after everything sent so far, on all streams.
  static CUresult SendJoin(uint32_t wire);
  // With the calling thread's current context.
  CUresult UseCurrentStream(CUstream program, Stream** stream);
  Slot& SlotOf(const Stream& stream) { return slots_[stream.slot]; }
  // The stream's name in fences.
  static int32_t FenceSlot(const Stream& stream) { return static_cast<int32_t>(stream.slot); }
  Slot& SlotAt(uint32_t slot) { return slots_[slot]; }
  // The calling thread's own default stream in its current context, if it has been used; null
  // otherwise.
  Stream* KnownPerThreadStream();
  Stream* LegacyStream(int device) { return &legacy_[device]; }
  // A new stream: named, known to the worker.
  CUresult CreateStream(uint64_t context_value, unsigned flags, int priority, uint64_t* value);
  CUresult DestroyStream(uint64_t value);

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
  // REQUIRES: as above. The mark to send with a call on the stream that covers all before it,
  // itself included.
  ipc::Mark NextMark(const Stream& stream, bool wake);
  // REQUIRES: as above. The mark of a StreamMark that asks for a wake. A clean stream stays clean:
  // a query after the wait must not find this mark on its way.
  ipc::Mark NextWake(const Stream& stream);
  // REQUIRES: as above. The call that carried the last mark was not sent after all.
  void UndoMark();

  uint64_t NextId() { return last_id_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  State();
  Stream* CreateOnIdleSlot(uint64_t* value);
  CUresult ResolveStream(CUstream program, const Context& context, uint64_t context_value,
                         Stream** stream);
  CUresult PerThreadStream(const Context& context, uint64_t context_value, Stream** stream);
  static void EndThread(ThreadState& thread);

  Stream legacy_[ipc::limits::kLegacySlots];
  std::unique_ptr<Slot[]> slots_;
  struct {
    Slot* slot = nullptr;  // null: nothing to undo
    uint64_t sequence = 0;
    uint64_t covering = 0;
    uint64_t marked_at = 0;
  } last_mark_;  // under the send lock
  std::atomic<uint64_t> last_id_{0};
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
