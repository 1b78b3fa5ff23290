#include "shim/streams.h"

#include <atomic>
#include <vector>

#include "shim/graphs/capture.h"
#include "shim/send.h"
#include "shim/state.h"
#include "shim/stderr_once.h"
#include "shim/sync.h"

namespace shim {
namespace {

thread_local bool per_thread_default = false;
std::atomic<bool> said_streams;

}  // namespace

PerThreadDefault::PerThreadDefault() : before_(per_thread_default) { per_thread_default = true; }
PerThreadDefault::~PerThreadDefault() { per_thread_default = before_; }
bool PerThreadDefault::Active() { return per_thread_default; }

Streams& Streams::Process() {
  static Streams* const streams = new Streams;
  return *streams;
}

Streams::Streams() : slots_(std::make_unique<Slot[]>(ipc::limits::kStreamsMax)) {
  for (unsigned device = 0; device < ipc::limits::kLegacySlots; ++device) {
    legacy_[device].slot = device;
    legacy_[device].device = static_cast<int>(device);
    legacy_[device].wire = State::WireOfDevice(static_cast<int>(device));
    legacy_[device].legacy = true;
    legacy_[device].id = State::Process().NextId();
    slots_[device].device = static_cast<int>(device);
  }
  SetThreadEndHook(&Streams::EndThread);
}

// --- finding, making and ending -----------------------------------------------------------------

CUresult Streams::JoinBefore(const Stream& stream) {
  return Client::Process().pipeline().fences().NeedsJoin(FenceSlot(stream)) ? SendJoin(stream.wire)
                                                                            : CUDA_SUCCESS;
}

// The fences are told under the send lock, so no call of another thread comes between the join's
// place in the ring and the moment from which freed memory counts as joined.
CUresult Streams::SendJoin(uint32_t wire) {
  return static_cast<CUresult>(PostPrepared(
      ipc::Op::StreamsJoin, wire, nullptr,
      [](void*) {
        Client::Process().pipeline().fences().OnJoin();
        return true;
      },
      nullptr));
}

CUresult Streams::Use(CUstream program, const Context& context, uint64_t context_value,
                      Stream** stream) {
  const CUresult result = Resolve(program, context, context_value, stream);
  return result == CUDA_SUCCESS ? JoinBefore(**stream) : result;
}

CUresult Streams::Resolve(CUstream program, const Context& context, uint64_t context_value,
                          Stream** stream) {
  if (program == nullptr && per_thread_default) program = CU_STREAM_PER_THREAD;
  if (program == nullptr || program == CU_STREAM_LEGACY) {
    *stream = &legacy_[context.device];
    return CUDA_SUCCESS;
  }
  if (program == CU_STREAM_PER_THREAD) return PerThread(context, context_value, stream);
  *stream = table.Find(reinterpret_cast<uint64_t>(program));
  return *stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult Streams::UseCurrent(CUstream program, Stream** stream) {
  Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context, &value); result != CUDA_SUCCESS)
    return result;
  return Use(program, *context, value, stream);
}

// A context's reset destroys the streams in it, so the thread may still have the name of a stream
// that is gone: then a new one is made.
CUresult Streams::PerThread(const Context& context, uint64_t context_value, Stream** stream) {
  ThreadState& thread = ThisThread();
  for (const ThreadState::DefaultStream& entry : thread.default_streams) {
    if (entry.context != context_value) continue;
    *stream = table.Find(entry.stream);
    if (*stream != nullptr) return CUDA_SUCCESS;
  }
  uint64_t value = 0;
  const CUresult result = Create(context_value, CU_STREAM_DEFAULT, 0, &value);
  if (result != CUDA_SUCCESS) return result;
  thread.default_streams.push_back({context_value, value});
  *stream = table.Find(value);
  return CUDA_SUCCESS;
}

// For queries, which must not make a stream.
Stream* Streams::KnownPerThread() {
  const ThreadState& thread = ThisThread();
  if (thread.contexts.empty()) return nullptr;
  for (const ThreadState::DefaultStream& entry : thread.default_streams) {
    if (entry.context == thread.contexts.back()) return table.Find(entry.stream);
  }
  return nullptr;
}

// A destroyed stream may still have work, and then a mark to come: its slot must not be given to
// another stream, whose later sequence would be overwritten by the earlier one.
Stream* Streams::CreateOnIdleSlot(uint64_t* value) {
  std::vector<uint64_t> busy;
  Stream* stream = nullptr;
  for (;;) {
    stream = table.Create(value);
    if (stream == nullptr) break;
    stream->slot = ipc::limits::kLegacySlots + IndexOf(*value);
    const Slot& slot = SlotOf(*stream);
    if (Client::Process().Completed(stream->slot, slot.sequence.load(std::memory_order_relaxed)))
      break;
    busy.push_back(*value);
  }
  for (const uint64_t other : busy) table.Destroy(other);
  return stream;
}

CUresult Streams::Create(uint64_t context_value, unsigned flags, int priority, uint64_t* value) {
  const Context* const context = State::Process().contexts.Find(context_value);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Stream* const stream = CreateOnIdleSlot(value);
  if (stream == nullptr) {
    StderrOnce(
        said_streams,
        {"this program has more than 1000 streams at once, which is all a session can have"});
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  stream->value = *value;
  stream->context = context_value;
  stream->wire = context->wire;
  stream->device = context->device;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = State::Process().NextId();
  stream->SetMade();
  Slot& slot = SlotOf(*stream);
  slot.device.store(context->device, std::memory_order_relaxed);
  slot.marked_at.store(slot.last_call.load(std::memory_order_relaxed), std::memory_order_relaxed);
  const GivenName name(*value);
  CUstream delivered = nullptr;
  return Post<ipc::Op::StreamCreate>(context->wire, &delivered, flags, priority, stream->slot);
}

CUresult Streams::Destroy(uint64_t value) {
  const Stream* const stream = table.Find(value);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  graphs::AbandonCapture(*stream);
  if (QueryStream(*stream) == CUDA_ERROR_NOT_READY) {
    // A later cuCtxSynchronize waits for this work, and can ask for no wake once the stream is
    // gone.
    CUstream program = reinterpret_cast<CUstream>(value);
    ipc::Mark mark;
    PostWith<ipc::Op::StreamMark>(
        stream->wire, [&] { mark = NextWake(*stream); }, program, mark);
  }
  return Post<ipc::Op::StreamDestroy>(stream->wire, reinterpret_cast<CUstream>(value));
}

bool Streams::IsClean(const Stream& stream) {
  const Slot& slot = SlotOf(stream);
  const uint64_t marked_at = slot.marked_at.load(std::memory_order_relaxed);
  if (stream.legacy) return Client::Process().pipeline().last_work() <= marked_at;
  return slot.last_call.load(std::memory_order_relaxed) <= marked_at;
}

ipc::Mark Streams::NextMark(const Stream& stream, bool wake) {
  Slot& slot = SlotOf(stream);
  const uint64_t sequence = slot.sequence.load(std::memory_order_relaxed) + 1;
  const uint64_t call = Client::Process().pipeline().submitted() + 1;
  last_mark_ = {&slot, sequence - 1, slot.covering.load(std::memory_order_relaxed),
                slot.marked_at.load(std::memory_order_relaxed)};
  slot.sequence.store(sequence, std::memory_order_relaxed);
  slot.last_call.store(call, std::memory_order_relaxed);
  slot.marked_at.store(call, std::memory_order_relaxed);
  slot.covering.store(sequence, std::memory_order_release);
  return {sequence, wake ? 1u : 0u, 0};
}

ipc::Mark Streams::NextWake(const Stream& stream) {
  if (!IsClean(stream)) return NextMark(stream, true);
  Slot& slot = SlotOf(stream);
  const uint64_t sequence = slot.sequence.load(std::memory_order_relaxed) + 1;
  last_mark_ = {&slot, sequence - 1, slot.covering.load(std::memory_order_relaxed),
                slot.marked_at.load(std::memory_order_relaxed)};
  slot.sequence.store(sequence, std::memory_order_relaxed);
  // The call of the wake is a call on the stream, too (Touch).
  slot.marked_at.store(Client::Process().pipeline().submitted() + 1, std::memory_order_relaxed);
  return {sequence, 1, 0};
}

void Streams::UndoMark() {
  if (last_mark_.slot == nullptr) return;
  last_mark_.slot->sequence.store(last_mark_.sequence, std::memory_order_relaxed);
  last_mark_.slot->covering.store(last_mark_.covering, std::memory_order_relaxed);
  last_mark_.slot->marked_at.store(last_mark_.marked_at, std::memory_order_relaxed);
  last_mark_.slot = nullptr;
}

// CUDA destroys a thread's default streams when the thread ends; without this, a program that
// starts a thread for each task would use up the session's streams.
void Streams::EndThread(ThreadState& thread) {
  if (Client::Process().Ready() != CUDA_SUCCESS) return;
  for (const ThreadState::DefaultStream& entry : thread.default_streams) {
    Process().Destroy(entry.stream);
  }
}

}  // namespace shim
