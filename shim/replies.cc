#include "shim/replies.h"

#include <cstring>

#include "ipc/calls/limits.h"
#include "ipc/futex.h"
#include "ipc/message.h"
#include "shim/call_trace.h"

namespace shim {
namespace {

constexpr int kRelaxesPerLook = 32;

}  // namespace

void Replies::Open(ipc::Receiver* receiver, ipc::SessionPage* page, Upkeep* upkeep) {
  receiver_ = receiver;
  page_ = page;
  upkeep_ = upkeep;
}

void Replies::Register(PendingReply* pending) {
  const base::MutexLock lock(&mutex_);
  pending_.push_back(pending);
}

void Replies::Forget(PendingReply* pending) {
  const base::MutexLock lock(&mutex_);
  std::erase(pending_, pending);
}

CUresult Replies::Wait(PendingReply* pending) {
  const TracedSpan span(ipc::TraceKind::kReplyWait);
  while (pending->done.load(std::memory_order_acquire) == 0) {
    if (page_->loss.load(std::memory_order_acquire) != 0) return upkeep_->Lost();
    if (upkeep_->NeedsRebuild()) {
      upkeep_->TryRebuild();
    } else {
      ReadOrFollow(pending, 0);
    }
  }
  return CUDA_SUCCESS;
}

CUresult Replies::WaitInRebuild(PendingReply* pending, uint32_t generation) {
  while (pending->done.load(std::memory_order_acquire) == 0) {
    if (page_->loss.load(std::memory_order_acquire) != 0) return upkeep_->Lost();
    if (page_->generation.load(std::memory_order_acquire) != generation)
      return CUDA_ERROR_NOT_READY;
    ReadOrFollow(pending, generation);
  }
  return CUDA_SUCCESS;
}

bool Replies::IsInterrupted(uint32_t rebuild_of) const {
  if (rebuild_of == 0) return upkeep_->NeedsRebuild();
  return page_->generation.load(std::memory_order_acquire) != rebuild_of;
}

void Replies::ReadOrFollow(PendingReply* mine, uint32_t rebuild_of) {
  if (!reading_.exchange(true, std::memory_order_acquire)) {
    ReadForAll(mine, rebuild_of);
    reading_.store(false, std::memory_order_seq_cst);
    WakeFollowers();
  } else {
    FollowReader(mine);
  }
}

void Replies::ReadForAll(PendingReply* mine, uint32_t rebuild_of) {
  while (mine->done.load(std::memory_order_acquire) == 0) {
    const std::span<const std::byte> message =
        receiver_->NextUntrusted(ipc::limits::kSpinUs, kNapUs);
    if (!message.empty()) {
      if (Deliver(message, mine)) WakeFollowers();
      continue;
    }
    if (receiver_->broken()) {
      ipc::MarkLost(page_, CUDA_ERROR_MPS_RPC_FAILURE,
                    "the worker wrote a message that makes no sense");
    }
    if (page_->loss.load(std::memory_order_acquire) != 0) return;
    if (IsInterrupted(rebuild_of)) return;
    upkeep_->CheckWorker();
  }
}

// True when another thread than the reader waits for the reply.
bool Replies::Deliver(std::span<const std::byte> message, const PendingReply* mine) {
  if (message.size() < sizeof(ipc::MessageHeader)) return false;
  const ipc::MessageHeader header = ipc::HeaderAt(message);
  if ((header.flags & ipc::kIsReply) == 0) return false;
  const base::MutexLock lock(&mutex_);
  for (PendingReply* const pending : pending_) {
    if (pending->request != header.request) continue;
    pending->bytes.assign(message.begin(), message.end());
    pending->done.store(1, std::memory_order_release);
    return pending != mine;
  }
  return false;  // its thread gave up, or none waits for it (LaneKeep before a boundary)
}

void Replies::FollowReader(PendingReply* mine) {
  const int64_t end = ipc::MonotonicNs() + ipc::limits::kSpinUs * 1000;
  const auto news = [&] {
    return mine->done.load(std::memory_order_acquire) != 0 ||
           !reading_.load(std::memory_order_seq_cst);
  };
  do {
    for (int i = 0; i < kRelaxesPerLook; ++i) {
      if (news()) return;
      ipc::CpuRelax();
    }
  } while (ipc::MonotonicNs() < end);
  const uint32_t ticket = followers_word_.load(std::memory_order_seq_cst);
  followers_sleeping_.fetch_add(1, std::memory_order_seq_cst);
  if (!news()) ipc::FutexWait(&followers_word_, ticket, kNapUs);
  followers_sleeping_.fetch_sub(1, std::memory_order_seq_cst);
}

void Replies::WakeFollowers() {
  if (followers_sleeping_.load(std::memory_order_seq_cst) == 0) return;
  followers_word_.fetch_add(1, std::memory_order_seq_cst);
  ipc::FutexWakeAll(&followers_word_);
}

}  // namespace shim
