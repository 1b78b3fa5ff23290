#include "shim/inprocess/account.h"

#include <mutex>
#include <utility>

#include "base/mutex.h"
#include "ipc/calls/limits.h"
#include "shim/arena/blocks.h"

namespace shim::inprocess {
namespace {

namespace wire = ipc::control;

uint64_t RoundUp(uint64_t bytes) { return arena::RoundUp(bytes, ipc::limits::kExtentBytesMin); }

}  // namespace

template <class Answer>
std::optional<Answer> Account::Ask(const wire::ProgramToDaemon& question,
                                   std::optional<Answer>* slot) {
  base::MutexLock lock(&mutex_);
  slot->reset();
  const uint64_t downs = downs_;
  if (!hooks_.there()) return std::nullopt;
  lock.Unlock();
  hooks_.tell(question);
  lock.Lock();
  while (!slot->has_value() && downs_ == downs) answered_.Wait(&mutex_);
  return std::exchange(*slot, std::nullopt);
}

CUresult Account::Take(uint64_t bytes) {
  const base::MutexLock asking(&asking_);
  if (bytes > UINT64_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t more = 0;
  {
    const base::MutexLock lock(&mutex_);
    const uint64_t wanted = RoundUp(used_bytes_ + bytes);
    more = wanted > held_bytes_ ? wanted - held_bytes_ : 0;
  }
  if (more != 0) {
    const std::optional<wire::MemoryAnswer> answer =
        Ask(wire::MemoryNeeded{hooks_.session_id(), more, 0}, &answer_);
    if (answer.has_value() && answer->result != 0) return static_cast<CUresult>(answer->result);
  }
  const base::MutexLock lock(&mutex_);
  held_bytes_ += more;
  used_bytes_ += bytes;
  iterations_->NoteAllocated(bytes);
  return CUDA_SUCCESS;
}

void Account::Give(uint64_t bytes) {
  const base::MutexLock lock(&mutex_);
  used_bytes_ -= bytes;
  surplus_.store(held_bytes_ > RoundUp(used_bytes_), std::memory_order_relaxed);
  iterations_->NoteFreed(bytes);
}

void Account::Remember(Kind kind, uint64_t name, uint64_t bytes) {
  const base::MutexLock lock(&mutex_);
  sizes_[static_cast<size_t>(kind)][name] = bytes;
}

uint64_t Account::Forget(Kind kind, uint64_t name) {
  const base::MutexLock lock(&mutex_);
  std::unordered_map<uint64_t, uint64_t>& sizes = sizes_[static_cast<size_t>(kind)];
  const std::unordered_map<uint64_t, uint64_t>::iterator found = sizes.find(name);
  if (found == sizes.end()) return 0;
  const uint64_t bytes = found->second;
  sizes.erase(found);
  return bytes;
}

std::optional<wire::MemoryReply> Account::Look(uint32_t device) {
  const base::MutexLock asking(&asking_);
  std::optional<wire::MemoryReply> reply = Ask(wire::GetMemory{device}, &reply_);
  if (!reply.has_value()) return reply;
  const base::MutexLock lock(&mutex_);
  reply->free_bytes += held_bytes_ - used_bytes_;
  return reply;
}

void Account::Trim() {
  if (!asking_.TryLock()) return;  // a thread is about to use what is left
  const base::MutexLock asking(&asking_, std::adopt_lock);
  const base::MutexLock lock(&mutex_);
  const uint64_t needed = RoundUp(used_bytes_);
  if (held_bytes_ > needed) {
    hooks_.tell(
        wire::MemoryFreed{hooks_.session_id(), std::exchange(held_bytes_, needed) - needed});
  }
  surplus_.store(false, std::memory_order_relaxed);
}

uint64_t Account::held_bytes() const {
  const base::MutexLock lock(&mutex_);
  return held_bytes_;
}

void Account::OnAnswer(const wire::MemoryAnswer& answer) {
  const base::MutexLock lock(&mutex_);
  answer_ = answer;
  answered_.NotifyAll();
}

void Account::OnReply(const wire::MemoryReply& reply) {
  const base::MutexLock lock(&mutex_);
  reply_ = reply;
  answered_.NotifyAll();
}

void Account::OnDown() {
  const base::MutexLock lock(&mutex_);
  ++downs_;
  answered_.NotifyAll();
}

}  // namespace shim::inprocess
