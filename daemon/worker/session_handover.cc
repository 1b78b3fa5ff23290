#include "daemon/worker/session_handover.h"

#include "daemon/worker/gate.h"
#include "daemon/worker/poll_device.h"

namespace worker {
namespace {

constexpr int64_t kRingNapUs = 250'000;  // whatever matters rings the doorbell; this is only a net
constexpr int64_t kLeaveWaitUs = 20'000;

}  // namespace

void SessionHandover::Release() {
  wanted_.store(true);
  around_.parking->Ring();
}

// The words in the ring are the client's until the client acknowledges the move. A program that
// computes or sleeps does so only when it calls again. The session's memory may have to go to the
// host before. A session that leaves here has taken nothing: its predecessor's quiet point still
// holds.
SessionHandover::Entry SessionHandover::AwaitClient() {
  const uint32_t generation = around_.life->generation();
  if (generation == 0) return Entry::kServe;
  const auto ready = [this, generation] {
    return around_.page->acknowledged.load(std::memory_order_seq_cst) == generation;
  };
  around_.parking->Until(
      {.over = [&] { return !around_.life->Alive() || ready() || wanted_.load(); },
       .nap_us = [] { return kRingNapUs; },
       .in_between = {}});
  if (!around_.life->Alive()) return Entry::kEnd;
  return ready() ? Entry::kServe : Entry::kLeave;
}

void SessionHandover::UndoTaken() {
  around_.page->to_worker.tail.store(around_.page->quiet_position.load(),
                                     std::memory_order_seq_cst);
}

void SessionHandover::Publish() {
  const bool freed = around_.quiesce->PollFrees();
  if (quiet_ || !freed || !around_.quiesce->IsComplete()) return;
  around_.quiesce->SaveForSuccessor();
  around_.page->quiet_position.store(around_.page->to_worker.tail.load(std::memory_order_relaxed),
                                     std::memory_order_seq_cst);
  quiet_ = true;
}

// The session's part of its lane is used up at a boundary alone. There the session takes nothing
// for a while, so that the device gets done. A stream may wait for a message that is still in the
// ring: then one more message is taken, and so on.
bool SessionHandover::TryLeave() {
  if (!around_.quiesce->MayLeave()) return false;
  const int64_t deadline_us = NowUs() + kLeaveWaitUs;
  PollDevice([&] {
    Publish();
    return quiet_ || NowUs() >= deadline_us || !around_.life->Alive();
  });
  return quiet_;
}

}  // namespace worker
