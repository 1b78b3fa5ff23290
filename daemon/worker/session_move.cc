// How a session goes from one worker to another: where it can be left, how it is left, how it is
// taken over. docs/recovery.md has the whole.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/worker/session_impl.h"

namespace worker {
namespace {

constexpr int64_t kNapUs = 250'000;
constexpr absl::Duration kLeaveWait = absl::Milliseconds(20);
constexpr absl::Duration kLeaveStep = absl::Microseconds(100);

}  // namespace

// The words in the ring are the client's until it says that they are in order, which a program that
// computes or sleeps does only when it calls again. Its memory may have to go to the host before.
bool SessionImpl::AwaitClient() {
  if (life_.generation() == 0) return true;
  const auto ready = [this] {
    return file_.page()->acknowledged.load(std::memory_order_seq_cst) == life_.generation();
  };
  parking_.Until({.over = [&] { return !life_.Alive() || ready() || release_.load(); },
                  .nap_us = [] { return kNapUs; },
                  .in_between = {}});
  if (!life_.Alive()) return false;
  if (ready()) {
    channel_ = file_.WorkerChannel();
    channel_.receiver->Heed(parking_.poked());
    return true;
  }
  LeaveToSuccessor();  // it has taken nothing: its predecessor's work is as it was
  return false;
}

int64_t SessionImpl::Patience(int64_t patience_us) const {
  return quiet_ ? patience_us : std::min(patience_us, unquiet_us_);
}

// Everything that was taken is complete: a successor can go on from here.
void SessionImpl::PublishQuiet() {
  const bool freed = held_.frees.Poll();
  if (quiet_) return;
  if (!freed || handlers_.modules().HasPartOfAnImage()) return;
  if (!LaneIsEmpty(turn_, LaneNow())) return;  // the lane is another's before it could go on
  for (StreamTable::Stream* stream : held_.streams.All()) {
    if (driver_.cuStreamQuery(stream->driver) != CUDA_SUCCESS)
      return;  // busy, or the device failed
  }
  handlers_.streams().SaveTimes();
  ipc::SessionPage* const page = file_.page();
  page->quiet_position.store(page->to_worker.tail.load(std::memory_order_relaxed),
                             std::memory_order_seq_cst);
  quiet_ = true;
}

void SessionImpl::Release() {
  release_.store(true);
  parking_.Ring();
}

// What lies in its lane is used up at a boundary alone. There it takes nothing for a while, so that
// the device gets done. A stream may wait for what lies in the ring still: then one more message is
// taken, and so on.
bool SessionImpl::TryLeave() {
  if (!MayLeave()) return false;
  const absl::Time deadline = absl::Now() + kLeaveWait;
  for (;;) {
    PublishQuiet();
    if (quiet_) return true;
    if (absl::Now() >= deadline || !life_.Alive()) return false;
    absl::SleepFor(kLeaveStep);
  }
}

void SessionImpl::LeaveToSuccessor() {
  handlers_.UseDevice(1);
  callbacks_.Wait();
  iteration_ends_.Clear();
  handlers_.DestroyObjects();
  held_.arena.Detach();
  gate_.reset();  // nothing of it is in its lane: the next goes on
  held_.pinned.Detach();
  LetFileGo();
  done_.Notify();
  released_ = true;
}

}  // namespace worker
