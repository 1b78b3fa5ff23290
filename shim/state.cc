#include "shim/state.h"

#include <mutex>
#include <utility>

#include "shim/graphs/capture.h"
#include "shim/iterations/iterations.h"
#include "shim/say.h"
#include "shim/send.h"
#include "shim/sync.h"

namespace shim {
namespace {

thread_local bool per_thread_default = false;
std::atomic<bool> said_streams;

}  // namespace

PerThreadDefault::PerThreadDefault() : before_(per_thread_default) { per_thread_default = true; }
PerThreadDefault::~PerThreadDefault() { per_thread_default = before_; }
bool PerThreadDefault::Active() { return per_thread_default; }

// --- allocations ---------------------------------------------------------------------------------

void Allocations::Add(const Allocation& allocation) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (allocation.kind == Allocation::Kind::kDevice)
    iterations::Iterations::Process().NoteAllocated(allocation.bytes);
  Allocation* added = nullptr;
  if (spare_.empty()) {
    added = &by_base_[allocation.base];
  } else {
    spare_.back().key() = allocation.base;
    added = &by_base_.insert(std::move(spare_.back())).position->second;
    spare_.pop_back();
  }
  *added = allocation;
  added->id = ++last_id_;
  count_.store(by_base_.size(), std::memory_order_relaxed);
}

bool Allocations::Find(uint64_t address, Allocation* found) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<uint64_t, Allocation>::const_iterator it = by_base_.upper_bound(address);
  if (it == by_base_.begin()) return false;
  --it;
  if (address - it->second.base >= it->second.bytes) return false;
  *found = it->second;
  return true;
}

bool Allocations::Remove(uint64_t base, Allocation::Kind kind, Allocation* removed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::map<uint64_t, Allocation>::iterator it = by_base_.find(base);
  if (it == by_base_.end() || it->second.kind != kind) return false;
  *removed = it->second;
  if (kind == Allocation::Kind::kDevice)
    iterations::Iterations::Process().NoteFreed(removed->bytes);
  std::map<uint64_t, Allocation>::node_type node = by_base_.extract(it);
  if (spare_.size() < kSpareMax) spare_.push_back(std::move(node));
  count_.store(by_base_.size(), std::memory_order_relaxed);
  return true;
}

std::vector<Allocation> Allocations::OfContext(uint64_t context) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Allocation> all;
  for (const std::pair<const uint64_t, Allocation>& entry : by_base_) {
    if (entry.second.context == context) all.push_back(entry.second);
  }
  return all;
}

// --- contexts ------------------------------------------------------------------------------------

State& State::Process() {
  static State* const state = new State;
  return *state;
}

State::State() : slots_(std::make_unique<Slot[]>(ipc::limits::kStreamsMax)) {
  for (unsigned device = 0; device < ipc::limits::kLegacySlots; ++device) {
    legacy_[device].slot = device;
    legacy_[device].device = static_cast<int>(device);
    legacy_[device].wire = WireOfDevice(static_cast<int>(device));
    legacy_[device].legacy = true;
    legacy_[device].id = NextId();
    slots_[device].device = static_cast<int>(device);
  }
  SetThreadEndHook(&State::EndThread);
}

CUresult State::Current(Context** context, uint64_t* value) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  const ThreadState& thread = ThisThread();
  if (thread.contexts.empty() || thread.contexts.back() == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *context = contexts.Find(thread.contexts.back());
  if (*context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!(*context)->active.load(std::memory_order_relaxed)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (value != nullptr) *value = thread.contexts.back();
  return CUDA_SUCCESS;
}

// --- streams -------------------------------------------------------------------------------------

CUresult State::JoinBefore(const Stream& stream) {
  return Client::Process().pipeline().fences().NeedsJoin(FenceSlot(stream)) ? SendJoin(stream.wire)
                                                                            : CUDA_SUCCESS;
}

CUresult State::SendJoin(uint32_t wire) {
  return static_cast<CUresult>(PostPrepared(
      ipc::Op::StreamsJoin, wire, nullptr,
      [](void*) {
        Client::Process().pipeline().fences().OnJoin();
        return true;
      },
      nullptr));
}

CUresult State::UseStream(CUstream program, const Context& context, uint64_t context_value,
                          Stream** stream) {
  const CUresult result = ResolveStream(program, context, context_value, stream);
  return result == CUDA_SUCCESS ? JoinBefore(**stream) : result;
}

CUresult State::ResolveStream(CUstream program, const Context& context, uint64_t context_value,
                              Stream** stream) {
  if (program == nullptr && per_thread_default) program = CU_STREAM_PER_THREAD;
  if (program == nullptr || program == CU_STREAM_LEGACY) {
    *stream = &legacy_[context.device];
    return CUDA_SUCCESS;
  }
  if (program == CU_STREAM_PER_THREAD) return PerThreadStream(context, context_value, stream);
  *stream = streams.Find(reinterpret_cast<uint64_t>(program));
  return *stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult State::UseCurrentStream(CUstream program, Stream** stream) {
  Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = Current(&context, &value); result != CUDA_SUCCESS) return result;
  return UseStream(program, *context, value, stream);
}

CUresult State::PerThreadStream(const Context& context, uint64_t context_value, Stream** stream) {
  ThreadState& thread = ThisThread();
  for (const ThreadState::DefaultStream& entry : thread.default_streams) {
    if (entry.context != context_value) continue;
    *stream = streams.Find(entry.stream);
    if (*stream != nullptr) return CUDA_SUCCESS;
  }
  uint64_t value = 0;
  const CUresult result = CreateStream(context_value, CU_STREAM_DEFAULT, 0, &value);
  if (result != CUDA_SUCCESS) return result;
  thread.default_streams.push_back({context_value, value});
  *stream = streams.Find(value);
  return CUDA_SUCCESS;
}

Stream* State::KnownPerThreadStream() {
  const ThreadState& thread = ThisThread();
  if (thread.contexts.empty()) return nullptr;
  for (const ThreadState::DefaultStream& entry : thread.default_streams) {
    if (entry.context == thread.contexts.back()) return streams.Find(entry.stream);
  }
  return nullptr;
}

// A destroyed stream may still have work, and then a mark to come: its slot must not be given to
// another stream, whose later sequence would be overwritten by the earlier one.
Stream* State::CreateOnIdleSlot(uint64_t* value) {
  std::vector<uint64_t> busy;
  Stream* stream = nullptr;
  for (;;) {
    stream = streams.Create(value);
    if (stream == nullptr) break;
    stream->slot = ipc::limits::kLegacySlots + IndexOf(*value);
    const Slot& slot = SlotOf(*stream);
    if (Client::Process().Completed(stream->slot, slot.sequence.load(std::memory_order_relaxed)))
      break;
    busy.push_back(*value);
  }
  for (const uint64_t other : busy) streams.Destroy(other);
  return stream;
}

CUresult State::CreateStream(uint64_t context_value, unsigned flags, int priority,
                             uint64_t* value) {
  const Context* const context = contexts.Find(context_value);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Stream* const stream = CreateOnIdleSlot(value);
  if (stream == nullptr) {
    SayOnce(said_streams,
            {"this program has more than 1000 streams at once, which is all a session can have"});
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  stream->value = *value;
  stream->context = context_value;
  stream->wire = context->wire;
  stream->device = context->device;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = NextId();
  stream->SetMade();
  Slot& slot = SlotOf(*stream);
  slot.device.store(context->device, std::memory_order_relaxed);
  slot.marked_at.store(slot.last_call.load(std::memory_order_relaxed), std::memory_order_relaxed);
  const GivenName name(*value);
  CUstream delivered = nullptr;
  return Post<ipc::Op::StreamCreate>(context->wire, &delivered, flags, priority, stream->slot);
}

CUresult State::DestroyStream(uint64_t value) {
  const Stream* const stream = streams.Find(value);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  graphs::Capture::Abandon(*stream);
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

bool State::IsClean(const Stream& stream) {
  const Slot& slot = SlotOf(stream);
  const uint64_t marked_at = slot.marked_at.load(std::memory_order_relaxed);
  if (stream.legacy) return Client::Process().pipeline().last_work() <= marked_at;
  return slot.last_call.load(std::memory_order_relaxed) <= marked_at;
}

ipc::Mark State::NextMark(const Stream& stream, bool wake) {
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

ipc::Mark State::NextWake(const Stream& stream) {
  if (!IsClean(stream)) return NextMark(stream, true);
  Slot& slot = SlotOf(stream);
  const uint64_t sequence = slot.sequence.load(std::memory_order_relaxed) + 1;
  last_mark_ = {&slot, sequence - 1, slot.covering.load(std::memory_order_relaxed),
                slot.marked_at.load(std::memory_order_relaxed)};
  slot.sequence.store(sequence, std::memory_order_relaxed);
  return {sequence, 1, 0};
}

void State::UndoMark() {
  if (last_mark_.slot == nullptr) return;
  last_mark_.slot->sequence.store(last_mark_.sequence, std::memory_order_relaxed);
  last_mark_.slot->covering.store(last_mark_.covering, std::memory_order_relaxed);
  last_mark_.slot->marked_at.store(last_mark_.marked_at, std::memory_order_relaxed);
  last_mark_.slot = nullptr;
}

void State::EndThread(ThreadState& thread) {
  if (Client::Process().Ready() != CUDA_SUCCESS) return;
  for (const ThreadState::DefaultStream& entry : thread.default_streams) {
    Process().DestroyStream(entry.stream);
  }
}

}  // namespace shim
