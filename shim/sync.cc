#include "shim/sync.h"

#include <optional>

#include "shim/call_trace.h"
#include "shim/client.h"
#include "shim/device_memory.h"
#include "shim/fetch_ahead.h"
#include "shim/iterations/iterations.h"
#include "shim/recording/recorder.h"
#include "shim/send.h"
#include "shim/streams.h"
#include "shim/work_details.h"

namespace shim {
namespace {

constexpr unsigned kSequenceBits = 48;

// The answer holds as long as the caller has the send lock, for a thread that destroys a stream
// takes this lock first. A mark must not be taken for a stream that is gone: the call would be
// refused, and another thread might wait for the mark.
bool IsGone(const Stream& stream) {
  return !stream.legacy && Streams::Process().table.Find(stream.value) == nullptr;
}

CUresult SendMark(const Stream& stream, uint64_t* sequence) {
  CUstream program = ProgramOf(stream);
  ipc::Mark mark;
  const CUresult result = PostWith<ipc::Op::StreamMark>(
      stream.wire,
      [&] {
        if (IsGone(stream)) return false;
        mark = Streams::Process().NextMark(stream, false);
        return true;
      },
      program, mark);
  *sequence = mark.sequence;
  return result;
}

CUresult SendWake(const Stream& stream) {
  CUstream program = ProgramOf(stream);
  ipc::Mark mark;
  return PostWith<ipc::Op::StreamMark>(
      stream.wire,
      [&] {
        if (IsGone(stream)) return false;
        mark = Streams::Process().NextWake(stream);
        return true;
      },
      program, mark);
}

// The sequence that tells when everything sent on the stream so far is complete.
CUresult CoveringSequence(const Stream& stream, uint64_t* sequence) {
  const Slot& slot = Streams::Process().SlotOf(stream);
  *sequence = slot.covering.load(std::memory_order_acquire);
  return Streams::Process().IsClean(stream) ? CUDA_SUCCESS : SendMark(stream, sequence);
}

// The same before a wait, together with the result that is likely to be copied after it.
CUresult CoverBeforeWait(const Stream& stream, uint64_t* sequence) {
  const bool fetches =
      stream.legacy && !Streams::Process().IsClean(stream) && FetchAhead::Process().Ask(stream);
  if (!fetches) return CoveringSequence(stream, sequence);
  *sequence = Streams::Process().SlotOf(stream).covering.load(std::memory_order_acquire);
  return CUDA_SUCCESS;
}

// Another thread may destroy the stream during the wait. Streams::Destroy then marked the last work
// of the stream and asked for a wake, so the wait has nothing more to send.
CUresult UnlessGone(const Stream& stream, CUresult result) {
  return result == CUDA_ERROR_INVALID_HANDLE && IsGone(stream) ? CUDA_SUCCESS : result;
}

// Another thread may destroy the stream, and make one in its place, while this one waits.
std::optional<Stream> CopyOf(uint64_t value) {
  std::optional<Stream> copy;
  Streams::Process().table.With(value, [&copy](Stream& stream) {
    if (stream.IsMade()) copy = stream;  // else it has no work yet
  });
  return copy;
}

// Waits for what was marked on a slot, whether or not its stream still lives.
CUresult WaitForSlot(uint32_t slot, int ordinal) {
  Streams& streams = Streams::Process();
  const uint64_t sequence = streams.SlotAt(slot).covering.load(std::memory_order_acquire);
  return Client::Process().WaitCompleted(slot, sequence, [&] {
    if (slot < ipc::limits::kLegacySlots) return SendWake(*streams.Legacy(ordinal));
    const ipc::HandleId name = static_cast<ipc::HandleId>(
        slot - ipc::limits::kLegacySlots + static_cast<uint32_t>(ipc::HandleId::kFirst));
    const std::optional<Stream> stream = CopyOf(streams.table.ValueOf(name));
    return stream.has_value() ? UnlessGone(*stream, SendWake(*stream)) : CUDA_SUCCESS;
  });
}

CUresult WaitForIt(const Stream& stream, uint64_t sequence, unsigned spin_us) {
  return Client::Process().WaitCompleted(
      stream.slot, sequence, [&] { return UnlessGone(stream, SendWake(stream)); }, spin_us);
}

// The program has waited for the device.
void Waited(CUresult result) {
  iterations::Iterations::Process().NoteSynchronised();
  if (result == CUDA_SUCCESS) DeviceMemory::Process().OnWaited();
  recording::Recorder* const recorder = recording::Recorder::Process();
  if (recorder != nullptr && result == CUDA_SUCCESS) recorder->OnWaited();
}

// For a trace in detail.
void NoteWait(ipc::WaitedFor what, uint32_t slot, uint64_t event) {
  if (IsTraced()) [[unlikely]]
    WorkDetails::Process().OnWaited(what, slot, event);
}

CUresult AfterStream(const Stream& stream, CUresult result) {
  Waited(result);
  if (result != CUDA_SUCCESS) return result;
  NoteWait(ipc::WaitedFor::kStream, stream.slot, 0);
  return Client::Process().AfterWait();
}

// The program may ask again and again, and send nothing in between.
CUresult NotReady() {
  Client::Process().pipeline().Flush();
  return CUDA_ERROR_NOT_READY;
}

}  // namespace

CUresult WaitForSequenceOnly(const Stream& stream, uint64_t sequence) {
  return WaitForIt(stream, sequence, ipc::limits::kSpinUs);
}

CUresult WaitForSequence(const Stream& stream, uint64_t sequence) {
  return AfterStream(stream, WaitForSequenceOnly(stream, sequence));
}

CUresult WaitForShortCopy(const Stream& stream, uint64_t sequence) {
  return AfterStream(stream, WaitForIt(stream, sequence, ipc::limits::kShortCopyUs));
}

CUresult Throttle(const Stream& stream) {
  constexpr uint32_t kCallsPerGate = 512;  // two gates are under way at most
  Slot& slot = Streams::Process().SlotOf(stream);
  if ((slot.calls.fetch_add(1, std::memory_order_relaxed) + 1) % kCallsPerGate != 0)
    return CUDA_SUCCESS;
  uint64_t sequence = 0;
  if (const CUresult result = SendMark(stream, &sequence); result != CUDA_SUCCESS) return result;
  const uint64_t before = slot.gate.exchange(sequence, std::memory_order_relaxed);
  return before == 0 ? CUDA_SUCCESS : WaitForSequenceOnly(stream, before);
}

CUresult SynchronizeStream(const Stream& stream) {
  Client& client = Client::Process();
  const uint64_t look = client.pipeline().fences().BeforeWait();
  uint64_t sequence = 0;
  if (const CUresult result = CoverBeforeWait(stream, &sequence); result != CUDA_SUCCESS)
    return result;
  const CUresult result = WaitForSequence(stream, sequence);
  if (result == CUDA_SUCCESS) {
    client.pipeline().AfterWait(look, Streams::FenceSlot(stream));
    DeviceMemory::Process().OnSynchronized();
    FetchAhead::Process().OnSynchronized();
  }
  return result;
}

CUresult QueryStream(const Stream& stream) {
  uint64_t sequence = 0;
  if (const CUresult result = CoveringSequence(stream, &sequence); result != CUDA_SUCCESS)
    return result;
  if (!Client::Process().Completed(stream.slot, sequence)) return NotReady();
  NoteWait(ipc::WaitedFor::kStream, stream.slot, 0);
  return Client::Process().AfterWait();
}

CUresult SynchronizeDevice(int ordinal) {
  Streams& streams = Streams::Process();
  const uint64_t look = Client::Process().pipeline().fences().BeforeWait();
  // Marks first, waits after, so that the streams finish side by side.
  CUresult result = CUDA_SUCCESS;
  uint64_t ignored = 0;
  streams.table.ForEach([&](uint64_t value, Stream*) {
    const std::optional<Stream> stream = CopyOf(value);
    if (stream.has_value() && stream->device == ordinal && result == CUDA_SUCCESS)
      result = UnlessGone(*stream, CoveringSequence(*stream, &ignored));
  });
  if (result == CUDA_SUCCESS) result = CoverBeforeWait(*streams.Legacy(ordinal), &ignored);
  // Slots, not streams: a destroyed stream's last work counts, too.
  for (uint32_t slot = 0; slot < ipc::limits::kStreamsMax && result == CUDA_SUCCESS; ++slot) {
    if (streams.SlotAt(slot).device.load(std::memory_order_relaxed) != ordinal) continue;
    result = WaitForSlot(slot, ordinal);
  }
  Waited(result);
  if (result == CUDA_SUCCESS) NoteWait(ipc::WaitedFor::kDevice, static_cast<uint32_t>(ordinal), 0);
  if (result == CUDA_SUCCESS) result = Client::Process().AfterWait();
  if (result == CUDA_SUCCESS) {
    // Of several devices only one has been waited for.
    if (Client::Process().connection().welcome.device_count == 1)
      Client::Process().pipeline().AfterWait(look, arena::kAnyStream);
    DeviceMemory::Process().OnSynchronized();
    FetchAhead::Process().OnSynchronized();
  }
  return result;
}

CUresult QueryEvent(uint64_t value, const Event& event) {
  const uint64_t recorded = event.recorded.load(std::memory_order_acquire);
  const uint32_t slot = static_cast<uint32_t>(recorded >> kSequenceBits);
  const uint64_t sequence = recorded & ((uint64_t{1} << kSequenceBits) - 1);
  if (recorded != 0 && !Client::Process().Completed(slot, sequence)) return NotReady();
  NoteWait(ipc::WaitedFor::kEvent, 0, value);
  return Client::Process().AfterWait();
}

CUresult SynchronizeEvent(uint64_t value, const Event& event) {
  const uint64_t recorded = event.recorded.load(std::memory_order_acquire);
  if (recorded == 0) return Client::Process().AfterWait();
  const uint32_t slot = static_cast<uint32_t>(recorded >> kSequenceBits);
  const uint64_t sequence = recorded & ((uint64_t{1} << kSequenceBits) - 1);
  const CUresult result = Client::Process().WaitCompleted(slot, sequence, [&] {
    return Post<ipc::Op::EventWake>(event.wire, reinterpret_cast<CUevent>(value));
  });
  Waited(result);
  if (result != CUDA_SUCCESS) return result;
  NoteWait(ipc::WaitedFor::kEvent, 0, value);
  DeviceMemory::Process().OnSynchronized();
  return Client::Process().AfterWait();
}

}  // namespace shim
