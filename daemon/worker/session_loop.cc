#include "daemon/worker/session_loop.h"

#include <cassert>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ipc/chunks/chunk_receiver.h"

namespace worker {
namespace {

constexpr int64_t kReplyWaitUs = 100'000;  // then ask whether the session still lives
constexpr int64_t kPoisonedNapUs = 1'000;

// A library's statuses have numbers of their own.
bool IsOfDriver(ipc::Op op) {
  const ipc::Library library = ipc::LibraryOf(op);
  return library == ipc::Library::kDriver || library == ipc::Library::kLaneway;
}

}  // namespace

SessionLoop::SessionLoop(const Surroundings& around, TurnWait* wait, ipc::Channel channel)
    : around_(around),
      wait_(*wait),
      channel_(std::move(channel)),
      reply_(std::make_unique<std::byte[]>(ipc::limits::kMessageBytesMax)) {
  if (channel_.receiver != nullptr) channel_.receiver->SetInterrupt(around_.parking->poked());
}

SessionLoop::Outcome SessionLoop::Run() {
  const SessionHandover::Entry entry = around_.handover->AwaitClient();
  if (entry == SessionHandover::Entry::kEnd) return Outcome::kEnded;
  if (entry == SessionHandover::Entry::kLeave) return Outcome::kLeft;
  if (around_.life->generation() != 0) {
    channel_ = around_.file->WorkerChannel();
    channel_.receiver->SetInterrupt(around_.parking->poked());
  }
  return ServeAll();
}

SessionLoop::Outcome SessionLoop::ServeAll() {
  while (around_.life->Alive()) {
    if (around_.poison->poisoned.load(std::memory_order_relaxed)) {
      around_.parking->Sleep(kPoisonedNapUs);  // the process is about to exit
      continue;
    }
    if (around_.handover->wanted() && around_.handover->TryLeave()) return Outcome::kLeft;
    around_.courtesy->GiveWay(!replays_);
    const std::span<const std::byte> message = wait_.NextUntrusted(channel_.receiver.get());
    if (!message.empty()) {
      Serve(message);
      around_.handlers->trace().OnServed(ipc::HeaderAt(message), around_.handlers->call());
      wait_.OnServed();
    } else if (channel_.receiver->broken()) {
      around_.life->Lose(
          "laneway: a message of this program had an impossible length; its session ends");
    } else {
      around_.handlers->trace().OnSilence();
    }
  }
  return Outcome::kEnded;
}

void SessionLoop::Serve(std::span<const std::byte> message) {
  const ipc::MessageHeader header = ipc::HeaderAt(message);
  around_.file->page()->counts.ops_received.fetch_add(1, std::memory_order_relaxed);
  const bool was_quiet = around_.handover->OnTaken();
  around_.bell->OnMessage();
  around_.handlers->Begin(header);
  const bool is_work = around_.handlers->call().serves_work;
  wait_.OnTaken(is_work);
  around_.handlers->trace().OnTaken(is_work);
  if (is_work) {
    around_.turn->OnWork();
    around_.iterations->OnWork();
  }
  around_.handlers->UseDevice(header.context);
  if (LaunchRuns::IsStepUntrusted(header.op) && TryReplay(header, was_quiet)) return;
  if (header.op == static_cast<uint16_t>(ipc::Op::Launch)) {
    around_.file->page()->replay.launches.fetch_add(1, std::memory_order_relaxed);
    replays_ = false;
  }
  ipc::Writer reply({reply_.get() + sizeof header, ipc::kBodyBytesMax});
  const ipc::Served served =
      around_.handlers->ServeUntrusted(header.op, message.subspan(sizeof header), &reply);
  if (served.outcome == ipc::Outcome::kMalformed) return LoseForMalformed(header.op);
  if (!around_.turn->at_boundary()) around_.handlers->streams().NoteWork();
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(header.op);
  assert(op.has_value());
  if (IsOfDriver(*op) && IsSticky(static_cast<CUresult>(served.status)))
    return OnPoison(served.status, was_quiet);
  if (served.refusal == ipc::Refusal::kBadAddress) OnBadAddress(*op);
  const bool wants_reply = (header.flags & ipc::kWantsReply) != 0;
  if (served.status != 0) {
    around_.handlers->trace().NoteFailure();
    if (!wants_reply) NoteFailure(*op, served.status);
  } else if (*op == ipc::Op::cublasSetStream_v2) {
    around_.handlers->blas().AfterSetStream();
  }
  if (wants_reply) SendReply(header, reply.size());
}

bool SessionLoop::TryReplay(const ipc::MessageHeader& header, bool was_quiet) {
  ipc::ChunkReceiver* const chunk = channel_.receiver->midway();
  if (chunk == nullptr) return false;
  const LaunchRuns::Replayed replayed =
      around_.handlers->TryReplayUntrusted(chunk->place(), chunk->FromLast(), chunk->verify());
  if (replayed.bytes == 0) {
    around_.handlers->Begin(header);
    return false;
  }
  chunk->Skip(replayed.bytes);
  replays_ = true;
  around_.file->page()->replay.launches.fetch_add(replayed.launches, std::memory_order_relaxed);
  around_.file->page()->replay.replayed.fetch_add(replayed.launches, std::memory_order_relaxed);
  around_.handlers->trace().NoteReplay(replayed.launches);
  around_.file->page()->counts.ops_received.fetch_add(replayed.messages - 1,
                                                      std::memory_order_relaxed);
  for (uint32_t i = 1; i < replayed.messages; ++i) around_.iterations->OnWork();
  if (!around_.turn->at_boundary()) around_.handlers->streams().NoteWork();
  if (IsSticky(replayed.result)) {
    OnPoison(static_cast<uint32_t>(replayed.result), was_quiet);
  } else if (replayed.result != CUDA_SUCCESS) {
    NoteFailure(ipc::Op::Launch, static_cast<uint32_t>(replayed.result));
  }
  return true;
}

// --- failures ------------------------------------------------------------------------------------

// With nothing in flight before, another session broke the device, and this call had no effect: the
// next worker takes the message again.
void SessionLoop::OnPoison(uint32_t status, bool was_quiet) {
  if (was_quiet) around_.handover->UndoTaken();
  around_.poison->OnPoisoned(0, static_cast<CUresult>(status), "");
}

// The driver's own calls say so with a status. A library would have faulted.
void SessionLoop::OnBadAddress(ipc::Op op) {
  if (IsOfDriver(op) || !around_.handlers->call().serves_work) return;
  const std::string sentence = absl::StrCat(
      "laneway: ", std::string(ipc::RowOf(op).name),
      " would reach memory that this program has not allocated; look at its sizes, leading "
      "dimensions and strides. The session ends, as after an illegal address");
  around_.life->Lose(sentence.c_str(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

void SessionLoop::NoteFailure(ipc::Op op, uint32_t status) {
  uint32_t none = 0;
  const uint32_t code = IsOfDriver(op) ? status : static_cast<uint32_t>(CUDA_ERROR_UNKNOWN);
  around_.file->page()->async_error.compare_exchange_strong(none, code);
}

void SessionLoop::LoseForMalformed(uint16_t op_untrusted) {
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(op_untrusted);
  const std::string name = op.has_value() ? std::string(ipc::RowOf(*op).name)
                                          : absl::StrCat("of an unknown number ", op_untrusted);
  const std::string sentence =
      absl::StrCat("laneway: a malformed call, ", name, ", reached the worker; the session ends");
  around_.life->Lose(sentence.c_str());
}

// --- replies -------------------------------------------------------------------------------------

void SessionLoop::SendReply(const ipc::MessageHeader& request, size_t body_bytes) {
  ipc::MessageHeader header = request;
  header.bytes = static_cast<uint32_t>(sizeof header + body_bytes);
  header.flags = ipc::kIsReply;
  std::memcpy(reply_.get(), &header, sizeof header);
  while (around_.life->Alive()) {
    const std::span<std::byte> room = channel_.sender->Reserve(header.bytes, kReplyWaitUs);
    if (room.empty()) continue;
    std::memcpy(room.data(), reply_.get(), header.bytes);
    channel_.sender->Commit(header.bytes);
    return;
  }
}

}  // namespace worker
