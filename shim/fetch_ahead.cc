#include "shim/fetch_ahead.h"
#include "shim/recording/recorder.h"

#include <cstring>

#include "ipc/codec_client.h"
#include "shim/client.h"
#include "shim/send.h"
#include "shim/staging.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace shim {
namespace {

// Whether everything sent on all streams but the legacy ones is known to be complete.
// REQUIRES: the send lock.
bool OthersAreIdle() {
  Streams& streams = Streams::Process();
  for (uint32_t i = ipc::limits::kLegacySlots; i < ipc::limits::kStreamsMax; ++i) {
    const Slot& slot = streams.SlotAt(i);
    if (slot.device.load(std::memory_order_relaxed) < 0) continue;
    const bool marked = slot.last_call.load(std::memory_order_relaxed) <=
                        slot.marked_at.load(std::memory_order_relaxed);
    if (!marked || !Client::Process().Completed(i, slot.covering.load(std::memory_order_acquire)))
      return false;
  }
  return true;
}

}  // namespace

FetchAhead& FetchAhead::Process() {
  static FetchAhead* const fetch_ahead = new FetchAhead;
  return *fetch_ahead;
}

bool FetchAhead::Ask(const Stream& legacy) {
  if (!IsExpected() || recording::Recorder::Process() != nullptr) return false;
  const ipc::Welcome& welcome = Client::Process().connection().welcome;
  if (welcome.device_count != 1 || !ipc::Knows(welcome.tables, ipc::Op::FetchAhead)) return false;
  const base::MutexLock lock(&mutex_);
  if (!IsExpected()) return false;
  // The device may still write what was asked for before.
  if (fetch_.ticket != 0 && !Client::Process().Completed(fetch_.stream.slot, fetch_.sequence))
    return false;
  if (!chunk_.has_value()) {
    unsigned chunk = 0;
    if (!Staging::Process().TryTake(&chunk)) return false;
    chunk_ = chunk;
  }
  return Send(legacy);
}

bool FetchAhead::Send(const Stream& legacy) {
  Fetch fetch{++last_ticket_, expected_, legacy, 0, 0};
  uint64_t offset = Staging::OffsetOf(*chunk_);
  CUdeviceptr from = fetch.result.address;
  size_t bytes = fetch.result.bytes;
  CUstream program = nullptr;
  ipc::Mark mark;
  const CUresult sent = PostWith<ipc::Op::FetchAhead>(
      legacy.wire,
      [&] {
        if (!Memory::IsLive(from, bytes) || !OthersAreIdle()) return false;
        mark = Streams::Process().NextMark(legacy, false);
        fetch.last_work = Client::Process().pipeline().last_work();
        return true;
      },
      offset, from, bytes, program, mark, fetch.ticket);
  if (sent != CUDA_SUCCESS) return false;
  fetch.sequence = mark.sequence;
  fetch_ = fetch;
  return true;
}

void FetchAhead::OnSynchronized() {
  const uint64_t last_work = Client::Process().pipeline().last_work();
  const base::MutexLock lock(&mutex_);
  if (has_waited_ && last_work != work_waited_for_) Forget();  // nothing came after the last one
  has_waited_ = true;
  work_waited_for_ = last_work;
}

void FetchAhead::Forget() {
  followed_.store(0, std::memory_order_relaxed);
  if (!chunk_.has_value()) return;
  Staging::Process().Give(*chunk_, fetch_.stream, fetch_.sequence);
  chunk_.reset();
  fetch_ = {};
}

void FetchAhead::Learn(const Result& result) {
  const bool follows = has_waited_ &&
                       Client::Process().pipeline().last_work() == work_waited_for_ &&
                       result.bytes <= ipc::limits::kShortCopyBytes;
  has_waited_ = false;
  if (!follows) return;
  if (!(result == expected_)) {
    Forget();
    expected_ = result;
  }
  if (!IsExpected()) followed_.fetch_add(1, std::memory_order_relaxed);
}

bool FetchAhead::HasBytes(const Result& result) const {
  Client& client = Client::Process();
  return fetch_.ticket != 0 && fetch_.result == result &&
         fetch_.last_work == client.pipeline().last_work() &&
         client.Completed(fetch_.stream.slot, fetch_.sequence) &&
         client.file().page()->fetched.load(std::memory_order_acquire) == fetch_.ticket;
}

std::optional<CUresult> FetchAhead::Take(const Copy& copy) {
  Fetch taken;
  uint64_t offset = 0;
  {
    const base::MutexLock lock(&mutex_);
    const Result result{copy.from, copy.bytes};
    Learn(result);
    if (!HasBytes(result)) return std::nullopt;
    taken = fetch_;
    offset = Staging::OffsetOf(*chunk_);
    std::memcpy(reinterpret_cast<void*>(copy.to), Staging::BytesOf(*chunk_), copy.bytes);
  }
  const CUresult noted = NoteUnsent<ipc::Op::CopyStagedOut>(
      taken.stream.wire, offset, CUdeviceptr{copy.from}, copy.bytes, CUstream{nullptr},
      ipc::Mark{taken.sequence, 0, 0});
  return noted == CUDA_SUCCESS ? WaitForSequence(taken.stream, taken.sequence) : noted;
}

}  // namespace shim
