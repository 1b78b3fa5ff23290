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
  slot->reset();
  const uint64_t downs = downs_;
  mutex_.Unlock();
  hooks_.tell(question);
  mutex_.Lock();
  while (!slot->has_value() && downs_ == downs) heard_.Wait(&mutex_);
  std::optional<Answer> answer = std::exchange(*slot, std::nullopt);
  if (downs_ != downs) answer.reset();  // the daemon that answered counts nothing any more
  return answer;
}

CUresult Account::Take(uint64_t bytes) {
  const base::MutexLock asking(&asking_);
  if (bytes > UINT64_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
  const base::MutexLock lock(&mutex_);
  for (;;) {
    while (daemon_ == Daemon::kGreeted) heard_.Wait(&mutex_);
    const uint64_t wanted = RoundUp(used_bytes_ + bytes);
    if (daemon_ == Daemon::kAway || wanted <= counted_bytes_) break;
    const uint64_t more = wanted - counted_bytes_;
    const std::optional<wire::MemoryAnswer> answer =
        Ask(wire::MemoryNeeded{hooks_.session_id(), more, 0}, &answer_);
    if (!answer.has_value()) continue;
    if (answer->result != 0) return static_cast<CUresult>(answer->result);
    counted_bytes_ += more;
  }
  used_bytes_ += bytes;
  iterations_->NoteAllocated(bytes);
  return CUDA_SUCCESS;
}

void Account::NoteSurplus() {
  surplus_.store(daemon_ == Daemon::kThere && counted_bytes_ > RoundUp(used_bytes_),
                 std::memory_order_relaxed);
}

void Account::Give(uint64_t bytes) {
  const base::MutexLock lock(&mutex_);
  used_bytes_ -= bytes;
  NoteSurplus();
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
  const base::MutexLock lock(&mutex_);
  if (daemon_ != Daemon::kThere) return std::nullopt;
  std::optional<wire::MemoryReply> reply = Ask(wire::GetMemory{device}, &reply_);
  if (reply.has_value()) reply->free_bytes += counted_bytes_ - used_bytes_;
  return reply;
}

void Account::Trim() {
  if (!asking_.TryLock()) return;  // a thread is about to use what is left
  const base::MutexLock asking(&asking_, std::adopt_lock);
  const base::MutexLock lock(&mutex_);
  const uint64_t needed = RoundUp(used_bytes_);
  if (daemon_ == Daemon::kThere && counted_bytes_ > needed) {
    const uint64_t freed = std::exchange(counted_bytes_, needed) - needed;
    hooks_.tell(wire::MemoryFreed{hooks_.session_id(), freed});
  }
  NoteSurplus();
}

uint64_t Account::OnHello() {
  const base::MutexLock lock(&mutex_);
  daemon_ = Daemon::kGreeted;
  counted_bytes_ = RoundUp(used_bytes_);
  return counted_bytes_;
}

void Account::OnUp() {
  const base::MutexLock lock(&mutex_);
  daemon_ = Daemon::kThere;
  NoteSurplus();  // what was freed since the hello
  heard_.NotifyAll();
}

void Account::OnAnswer(const wire::MemoryAnswer& answer) {
  const base::MutexLock lock(&mutex_);
  answer_ = answer;
  heard_.NotifyAll();
}

void Account::OnReply(const wire::MemoryReply& reply) {
  const base::MutexLock lock(&mutex_);
  reply_ = reply;
  heard_.NotifyAll();
}

void Account::OnDown() {
  const base::MutexLock lock(&mutex_);
  daemon_ = Daemon::kAway;
  ++downs_;
  NoteSurplus();
  heard_.NotifyAll();
}

}  // namespace shim::inprocess
