#include "shim/pipeline.h"

#include <signal.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>

#include "shim/call_trace.h"
#include "shim/iterations/tokens.h"
#include "shim/rebuild/record.h"
#include "shim/recording/recorder.h"
#include "shim/thread_state.h"
#include "shim/work_details.h"

namespace shim {
namespace {

// How far the device is: it changes nothing there.
bool IsQuestion(ipc::Op op) {
  return op == ipc::Op::StreamMark || op == ipc::Op::EventWake || op == ipc::Op::Boundary ||
         op == ipc::Op::FetchAhead;
}

// What a thread waits for without another call to the worker.
bool MayBeWaitedFor(ipc::Op op) {
  return op == ipc::Op::StreamMark || op == ipc::Op::EventWake || op == ipc::Op::FetchAhead ||
         op == ipc::Op::HostCall;
}

// Calls that load code or map memory where a program first needs it, and the client's own orders of
// launches: the next iteration has none of them at the same place.
bool ComesOnce(ipc::Op op) {
  return op == ipc::Op::HasModule || op == ipc::Op::ModuleBytes || op == ipc::Op::LoadModule ||
         op == ipc::Op::GetFunction || op == ipc::Op::GetDeviceInfo || op == ipc::Op::ArenaMap ||
         op == ipc::Op::OrderLaunches || op == ipc::Op::OrderRenamedLaunches;
}

// The next message is sent with all that is held before it.
void GoAlone(ChunkSender* chunks) {
  if (chunks != nullptr) chunks->Begin(ChunkSender::Fold::kAlone);
}

// Once no message is held back.
void TellMemory(const ChunkSender& chunks, MemoryAtBoundary* memory) {
  if (memory->AwaitsSending() && !chunks.holds()) [[unlikely]]
    memory->OnAllSent();
}

// Of messages without a context of the program's.
uint32_t WireOfDevice(int device) { return static_cast<uint32_t>(device) + 1; }

// The legacy stream of a device has the device's number as its slot. `touched`: the message's
// stream, as Pipeline::Touch takes it.
void TellDetails(const Outgoing& call, int32_t touched) {
  if (IsQuestion(call.op) && call.op != ipc::Op::FetchAhead) return;
  if (call.capture != 0) return;  // a part of a graph
  const uint32_t device = (call.context & 0xff) - 1;
  const uint32_t number = WorkDetails::Process().OnSent(
      {.op = call.op,
       .values = call.values,
       .slot = touched == Pipeline::kLegacyStream ? device : static_cast<uint32_t>(touched),
       .device = device,
       .begins_iteration = call.boundary.has_value()});
  if (number == 0) return;
  ipc::MessageHeader header = ipc::HeaderAt(call.room);
  header.record = number;
  std::memcpy(call.room.data(), &header, sizeof header);
}

void WriteLog(const Pipeline::Ends& ends, Outgoing* call) {
  if (ends.ring == nullptr) return;
  call->token = Record({.op = call->op,
                        .values = call->values,
                        .encoded = &call->encoded,
                        .message = call->room,
                        .position = ends.ring->PositionAfter(call->room.size()),
                        .consumed = ends.page->to_worker.tail.load(std::memory_order_relaxed),
                        .awaits_reply = call->wants_reply,
                        .arena_base = ends.arena_base,
                        .capture = call->capture},
                       ends.log);
  uint32_t obstacles = ends.log->incomplete();
  if (ends.log->overflowed()) obstacles |= ipc::kLogTooLong;
  if (obstacles != 0) ends.page->obstacles.fetch_or(obstacles, std::memory_order_relaxed);
}

// What the worker captures into a piece of a graph is a part of the piece.
void TellRecorder(const Outgoing& call, recording::Recorder* recorder) {
  if (call.values == nullptr || call.capture != 0) return;
  recorder->OnSent({.op = call.op,
                    .values = call.values,
                    .message = call.room,
                    .operation = call.operation.has_value() ? &*call.operation : nullptr,
                    .boundary = call.boundary.has_value()});
}

}  // namespace

Pipeline::Pipeline() {
#if LANEWAY_TEST_HOOKS
  if (const char* const n = std::getenv("LANEWAY_TEST_STOP_AT"); n != nullptr) {
    stop_at_ = std::strtoull(n, nullptr, 10);
  }
#endif
}

void Pipeline::Open(const Ends& ends) {
  ends_ = ends;
  ipc::ClientWords* const words = ipc::ClientWordsOf(ends.page);
  verdicts_.Open(ends.verdicts, words, ends.namer);
  replay_.Open(ends.replay, ends.chunks, words, ends.memory, &verdicts_);
  generation_.store(ends.page->generation.load(std::memory_order_acquire));
}

// The size is computed without the lock: the codec reads the program's arguments for it.
bool Pipeline::Send(Outgoing* call) {
  const size_t body_bytes_max = ipc::RequestBytesMax(call->op, call->values);
  const base::MutexLock lock(&mutex_);
  Detect(call);
  Boundary(*call);
  Fold(*call, body_bytes_max);
  if (!Encode(body_bytes_max, call)) return false;
  if (IsTraced()) [[unlikely]]
    TellDetails(*call, touched_);
  Record(call);
  if (ends_.recorder != nullptr) [[unlikely]]
    TellRecorder(*call, ends_.recorder);
  if (call->reply != nullptr) ends_.replies->Register(call->reply);
  Commit(call->op, call->context, call->room.size());
  return true;
}

CUresult Pipeline::SendKnown(ipc::Op op, uint32_t context, const KnownMessage& message,
                             KnownMessage::WriteEnd write_end, void* argument) {
  const base::MutexLock lock(&mutex_);
  iterations::OnKnownOperation();
  ipc::BoundaryInfo boundary;
  if (ends_.iterations->Before(message.operation(), &boundary)) [[unlikely]]
    EndIteration(boundary, context);
  operations_.store(operations() + 1, std::memory_order_relaxed);
  if (ends_.chunks != nullptr) {
    const bool folds = replay_.ForNextCall() != nullptr && !IsTracedInDetail() &&
                       message.bytes() <= ipc::limits::kChunkMessageBytesMax;
    ends_.chunks->Begin(folds ? ChunkSender::Fold::kFolds : ChunkSender::Fold::kAlone);
  }
  const std::span<std::byte> room = MakeRoom(message.bytes());
  if (room.empty()) [[unlikely]]
    return ends_.upkeep->Lost();
  message.Write(room, write_end, argument);
  Commit(op, context, message.bytes());
  return CUDA_SUCCESS;
}

CUresult Pipeline::Note(Outgoing* call) {
  const base::MutexLock lock(&mutex_);
  Detect(call);
  Boundary(*call);
  GoAlone(ends_.chunks);
  return MakeRoom(sizeof(ipc::MessageHeader)).empty() ? ends_.upkeep->Lost() : CUDA_SUCCESS;
}

// --- Detect --------------------------------------------------------------------------------------

void Pipeline::Detect(Outgoing* call) {
  if (call->values == nullptr || call->capture != 0) return;
  if (ends_.recorder != nullptr && recording::Recorder::IsOwnCall()) return;
  call->operation = iterations::TokenOf(call->op, call->values);
  if (!call->operation.has_value()) return;
  ipc::BoundaryInfo info;
  if (ends_.iterations->Before(*call->operation, &info)) call->boundary = info;
}

// --- Boundary ------------------------------------------------------------------------------------

void Pipeline::Boundary(const Outgoing& call) {
  if (!call.operation.has_value()) return;
  if (call.boundary.has_value()) [[unlikely]]
    EndIteration(*call.boundary, call.context);
  operations_.store(operations() + 1, std::memory_order_relaxed);
}

void Pipeline::EndIteration(ipc::BoundaryInfo info, uint32_t context) {
  const MemoryAtBoundary::Wishes wishes = ends_.memory->OnBoundary();
  const uint32_t wire = WireOfDevice(wishes.lane_device);
  info.persistent_bytes = wishes.persistent_bytes;
  info.ephemeral_bytes = std::max(info.ephemeral_bytes, wishes.ephemeral_bytes);
  // No thread waits for the answer: without other memory for the lane, the session keeps the lane.
  for (const arena::Range& range : wishes.outlived) {
    const ipc::Arguments<ipc::Op::LaneKeep> keep(CUdeviceptr{range.base}, size_t{range.bytes});
    SendOwn(ipc::Op::LaneKeep, wire, keep.values(), true);
  }
  for (const arena::Range& range : wishes.unneeded) {
    const ipc::Arguments<ipc::Op::ArenaUnmap> unmap(CUdeviceptr{range.base});
    SendOwn(ipc::Op::ArenaUnmap, wire, unmap.values(), false);
  }
  ends_.memory->Unmapped(wishes.unneeded);
  const ipc::Arguments<ipc::Op::Boundary> arguments(&info);
  SendOwn(ipc::Op::Boundary, context, arguments.values(), false);
  replay_.OnBoundary(info.body);
}

// A lost session shows when the call itself is to be sent.
void Pipeline::SendOwn(ipc::Op op, uint32_t context, ipc::Values values, bool wants_reply) {
  Outgoing own(op, context, values);
  own.wants_reply = wants_reply;
  if (ends_.chunks != nullptr) ends_.chunks->Begin(ChunkSender::Fold::kCuts);
  if (!Encode(ipc::RequestBytesMax(op, values), &own)) return;
  Record(&own);
  Commit(op, context, own.room.size());
}

// --- Fold ----------------------------------------------------------------------------------------

// The log knows messages by their positions in the ring, so what it keeps goes alone. So do calls
// that a thread waits for, and all calls while each is told in detail. SendKnown's messages are
// none of these.
void Pipeline::Fold(const Outgoing& call, size_t body_bytes_max) {
  if (ends_.chunks == nullptr) return;
  using How = ChunkSender::Fold;
  if (replay_.ForNextCall() == nullptr || IsTracedInDetail()) {
    ends_.chunks->Begin(How::kAlone);
  } else if (ComesOnce(call.op)) {
    ends_.chunks->Begin(How::kCuts);
  } else if (call.wants_reply || call.capture != 0 || NeedsPosition(call.op) ||
             sizeof(ipc::MessageHeader) + body_bytes_max > ipc::limits::kChunkMessageBytesMax) {
    ends_.chunks->Begin(How::kAlone);
  } else {
    ends_.chunks->Begin(MayBeWaitedFor(call.op) ? How::kEndsRun : How::kFolds);
  }
}

void Pipeline::FlushHeld() {
  const base::MutexLock lock(&mutex_);
  GoAlone(ends_.chunks);
  // The session is lost, or the sender has sent what it held.
  if (MakeRoom(sizeof(ipc::MessageHeader)).empty()) (void)ends_.upkeep->Lost();
  TellMemory(*ends_.chunks, ends_.memory);
}

// --- Encode --------------------------------------------------------------------------------------

std::span<std::byte> Pipeline::MakeRoom(size_t bytes_max) {
  touched_ = arena::kAnyStream;
  if (!Displaced()) [[likely]] {
    const std::span<std::byte> room = ends_.chunks != nullptr
                                          ? ends_.chunks->Reserve(bytes_max, kNapUs)
                                          : ends_.sender->Reserve(bytes_max, kNapUs);
    if (!room.empty()) [[likely]]
      return room;
  }
  return MakeRoomSlowly(bytes_max);
}

std::span<std::byte> Pipeline::MakeRoomSlowly(size_t bytes_max) {
  assert(bytes_max <= sizeof(ipc::MessageHeader) + ipc::kBodyBytesMax);
  for (;;) {
    if (Displaced() && ends_.upkeep->RebuildLocked() != CUDA_SUCCESS) return {};
    touched_ = arena::kAnyStream;
    const std::span<std::byte> room = ends_.sender->Reserve(bytes_max, kNapUs);
    if (!room.empty()) return room;
    ends_.upkeep->CheckWorker();
    if (ends_.page->loss.load(std::memory_order_acquire) != 0) return {};
  }
}

uint32_t Pipeline::NextRequest() {
  if (++last_request_ == 0) ++last_request_;
  return last_request_;
}

bool Pipeline::Encode(size_t body_bytes_max, Outgoing* call) {
  call->room = MakeRoom(sizeof(ipc::MessageHeader) + body_bytes_max);
  if (call->room.empty()) {
    call->failure = ends_.upkeep->Lost();
    return false;
  }
  const Preparation& prepare = call->prepare;
  if (prepare.decide != nullptr && !prepare.decide(prepare.argument)) {
    call->encoded.refusal = ipc::Refusal::kBadHandle;
    return false;
  }
  ipc::Writer writer(call->room.subspan(sizeof(ipc::MessageHeader)));
  call->encoded = ipc::EncodeRequest(call->op, call->values, *ends_.caller, &writer);
  if (call->encoded.refusal != ipc::Refusal::kNone) {
    if (prepare.undo != nullptr) prepare.undo();
    return false;
  }
  ipc::MessageHeader header;
  header.bytes = static_cast<uint32_t>(sizeof header + writer.size());
  header.op = static_cast<uint16_t>(call->op);
  header.thread = ThisThread().number;
  header.context = call->context;
  if (call->wants_reply) {
    header.flags = ipc::kWantsReply;
    header.request = NextRequest();
    if (call->reply != nullptr) call->reply->request = header.request;
  }
  std::memcpy(call->room.data(), &header, sizeof header);
  call->room = call->room.first(header.bytes);
  if (call->learned != nullptr && call->operation.has_value())
    call->learned->Learn(call->room, *call->operation);
  return true;
}

// --- Record --------------------------------------------------------------------------------------

void Pipeline::Record(Outgoing* call) {
  if (call->capture != 0 || IsRecorded(call->op)) WriteLog(ends_, call);
}

// --- Commit --------------------------------------------------------------------------------------

// A message that the sender holds back counts as submitted, too: its place among the session's
// messages is fixed.
void Pipeline::Commit(ipc::Op op, uint32_t context, size_t bytes) {
  if (ends_.chunks != nullptr) {
    ends_.chunks->Commit(bytes);
    TellMemory(*ends_.chunks, ends_.memory);
  } else {
    ends_.sender->Commit(bytes);
  }
  const uint64_t submitted = submitted_.load(std::memory_order_relaxed) + 1;
  if (!IsQuestion(op)) {
    last_work_.store(submitted, std::memory_order_relaxed);
    const int32_t slot =
        touched_ == kLegacyStream ? static_cast<int32_t>(context & 0xff) - 1 : touched_;
    if (slot != arena::kAnyStream) fences_.OnWork(slot, submitted);
  }
  submitted_.store(submitted, std::memory_order_relaxed);
#if LANEWAY_TEST_HOOKS
  if (submitted == stop_at_) raise(SIGSTOP);
#endif
}

// Without the lock as long as the wait tells nothing new: a program waits often.
void Pipeline::AfterWait(uint64_t look, int32_t slot) {
  if (!fences_.Tells(look, slot)) return;
  const base::MutexLock lock(&mutex_);
  fences_.AfterWait(look, slot);
}

}  // namespace shim
