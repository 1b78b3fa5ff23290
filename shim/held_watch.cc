#include "shim/held_watch.h"

#include "ipc/futex.h"
#include "shim/service_thread.h"

namespace shim {
namespace {}  // namespace

bool HeldWatch::Start(ChunkSender* sender, Pipeline* pipeline) {
  HeldWatch* const watch = new HeldWatch(sender, pipeline);
  const auto run = [](void* self) -> void* { static_cast<HeldWatch*>(self)->Run(); };
  if (StartServiceThread(run, watch)) return true;
  delete watch;
  return false;
}

void HeldWatch::Run() {
  uint64_t last = 0;
  int idle_naps = 0;
  for (;;) {
    const uint64_t held = sender_.held();
    if (held != 0 && held == last) pipeline_.Flush();
    idle_naps = held == 0 ? idle_naps + 1 : 0;
    last = held;
    if (idle_naps >= kNapsBeforeSleep) {
      SleepUntilStirred();
      idle_naps = 0;
    }
    // The word changes after a sleep alone, so this naps.
    ipc::FutexWait(&sender_.stirred(), sender_.stirred().load(std::memory_order_relaxed), kNapUs);
  }
}

// The sender sees the flag, or this thread sees what the sender holds.
void HeldWatch::SleepUntilStirred() {
  const uint32_t before = sender_.stirred().load(std::memory_order_seq_cst);
  sender_.watch_sleeps().store(true, std::memory_order_seq_cst);
  while (!sender_.holds() && sender_.watch_sleeps().load(std::memory_order_seq_cst))
    ipc::FutexWait(&sender_.stirred(), before, kUntilWokenUs);
  sender_.watch_sleeps().store(false, std::memory_order_relaxed);
}

}  // namespace shim
