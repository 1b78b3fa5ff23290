#include "shim/chunk_sender.h"

#include <cassert>
#include <cstring>

#include "ipc/calls.h"
#include "ipc/futex.h"
#include "shim/call_trace.h"

namespace shim {

using ipc::ChunkMatcher;

// Whatever the matcher says of the message, its verdict can be followed: there is room for all that
// is held. A chunk that is repeated is shorter than its messages.
std::span<std::byte> ChunkSender::ReserveFirst(size_t bytes, int64_t timeout_us) {
  if (GoesAlone() && !matcher_.in_run()) return ring_.Reserve(bytes, timeout_us);
  if (ring_.Reserve(kRunRoom, timeout_us).empty()) return {};
  if (GoesAlone()) {
    if (fold_ == Fold::kCuts) {
      matcher_.Cut();
    } else {
      matcher_.EndRun();
    }
    SendUnsent();
    in_run_.store(matcher_.in_run(), std::memory_order_relaxed);
    return ring_.Reserve(bytes, timeout_us);
  }
  if (matcher_.full() && !matcher_.holds() && ring_.Drained()) {
    matcher_.EndRun();
    matcher_.Forget();
    if (watch_ != nullptr && watch_->OnForget()) SendForgetOrders();
  }
  assert(bytes <= ipc::limits::kChunkMessageBytesMax);
  return matcher_.Room().first(bytes);
}

void ChunkSender::Obey(ChunkMatcher::Verdict verdict) {
  switch (verdict) {
    case ChunkMatcher::Verdict::kHold:
      Hold();
      break;
    case ChunkMatcher::Verdict::kSend:
      SendUnsent();
      break;
    case ChunkMatcher::Verdict::kRepeat:
      SendRepeat();
      break;
  }
  in_run_.store(matcher_.in_run(), std::memory_order_relaxed);
}

// Nothing was held before.
void ChunkSender::Hold() {
  held_.store(++holds_so_far_, std::memory_order_seq_cst);
  if (!watch_sleeps_.load(std::memory_order_seq_cst)) return;
  watch_sleeps_.store(false, std::memory_order_relaxed);
  stirred_.fetch_add(1, std::memory_order_seq_cst);
  ipc::FutexWakeAll(&stirred_);
}

void ChunkSender::SendUnsent() {
  for (std::span<const std::byte> rest = matcher_.unsent(); !rest.empty();) {
    const ipc::MessageHeader header = ipc::HeaderAt(rest);
    const std::span<std::byte> room = ring_.Reserve(header.bytes, 0);
    assert(!room.empty());
    std::memcpy(room.data(), rest.data(), header.bytes);
    ring_.Commit(header.bytes);
    rest = rest.subspan(ipc::PaddedBytes(header.bytes));
  }
  held_.store(0, std::memory_order_relaxed);
}

void ChunkSender::SendForgetOrders() {
  ipc::MessageHeader header;
  header.op = static_cast<uint16_t>(ipc::Op::ForgetOrders);
  header.bytes = sizeof header;
  const std::span<std::byte> room = ring_.Reserve(header.bytes, 0);
  assert(!room.empty());
  std::memcpy(room.data(), &header, sizeof header);
  ring_.Commit(header.bytes);
}

void ChunkSender::SendRepeat() {
  TracedSpan span(ipc::TraceKind::kRepeat);
  span.SetAmount(matcher_.repeated_messages());
  if (watch_ != nullptr &&
      watch_->OnRepeat(matcher_.repeat(), matcher_.patches(), matcher_.unsent()))
    SendForgetOrders();
  const std::span<const ipc::ChunkPatch> patches = matcher_.patches();
  ipc::ChunkRepeat repeat = matcher_.repeat();
  repeat.verify = verify_ ? 1 : 0;
  ipc::MessageHeader header;
  header.flags = ipc::kRepeatsChunk;
  header.bytes =
      static_cast<uint32_t>(sizeof header + sizeof(ipc::ChunkRepeat) + patches.size_bytes());
  const std::span<std::byte> room = ring_.Reserve(header.bytes, 0);
  assert(!room.empty());
  std::byte* to = room.data();
  std::memcpy(to, &header, sizeof header);
  std::memcpy(to += sizeof header, &repeat, sizeof repeat);
  if (!patches.empty()) std::memcpy(to + sizeof repeat, patches.data(), patches.size_bytes());
  ring_.Commit(header.bytes);
  held_.store(0, std::memory_order_relaxed);
}

}  // namespace shim
