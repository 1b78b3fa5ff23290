#include "daemon/worker/parking.h"

#include <utility>

#include "daemon/worker/gate.h"
#include "ipc/futex.h"

namespace worker {
namespace {

constexpr int64_t kCommandRetryUs = 500;  // until the device has finished, which no ring tells

}  // namespace

Parking::Parking(ipc::SessionPage* page, ipc::Progress* progress, std::function<bool()> may_command,
                 OnWaited on_waited)
    : page_(*page),
      progress_(*progress),
      may_command_(std::move(may_command)),
      on_waited_(std::move(on_waited)) {}

void Parking::Ring() {
  poked_.store(1, std::memory_order_seq_cst);
  doorbell()->fetch_add(1, std::memory_order_seq_cst);
  ipc::FutexWakeAll(doorbell());
}

void Parking::Post(Command command) {
  {
    const base::MutexLock lock(&mutex_);
    commands_.push_back(std::move(command));
  }
  Ring();
}

void Parking::Keep(const Answer& answer) {
  {
    const base::MutexLock lock(&mutex_);
    if (expects_) answer_ = answer;
  }
  Ring();
}

bool Parking::HasAnswer() const {
  const base::MutexLock lock(&mutex_);
  return answer_.has_value();
}

void Parking::Expect() {
  const base::MutexLock lock(&mutex_);
  expects_ = true;
  answer_.reset();
}

void Parking::ExpectNone() {
  const base::MutexLock lock(&mutex_);
  expects_ = false;
  answer_.reset();
}

// The condition is asked without the mutex: deferred frees post to lanewayd there, and the worker's
// control takes Snapshot() under a mutex of its own.
bool Parking::RunCommands() {
  poked_.store(0, std::memory_order_seq_cst);
  std::vector<Command> commands;
  {
    const base::MutexLock lock(&mutex_);
    if (commands_.empty()) return true;
  }
  if (!may_command_()) return false;
  {
    const base::MutexLock lock(&mutex_);
    commands.swap(commands_);
  }
  for (const Command& command : commands) command();
  return true;
}

// The doorbell is read before the look, so a ring after the look ends the sleep.
void Parking::Until(const Wait& wait) {
  for (;;) {
    const uint32_t ticket = doorbell()->load(std::memory_order_seq_cst);
    if (wait.over()) return;
    const bool done = RunCommands();
    if (wait.in_between) wait.in_between();
    if (wait.over()) return;
    ipc::FutexWait(doorbell(), ticket, done ? wait.nap_us() : kCommandRetryUs);
  }
}

void Parking::Nap(int64_t us) {
  const uint32_t ticket = doorbell()->load(std::memory_order_seq_cst);
  (void)RunCommands();
  ipc::FutexWait(doorbell(), ticket, us);
}

void Parking::Sleep(int64_t us) const {
  ipc::FutexWait(doorbell(), doorbell()->load(std::memory_order_seq_cst), us);
}

Parking::Waiting::Waiting(Parking* parking, ipc::WaitState reason)
    : parking_(*parking), reason_(reason), begin_us_(NowUs()) {
  ipc::Progress& progress = parking_.progress_;
  progress.wait_since_us.store(static_cast<uint64_t>(begin_us_), std::memory_order_relaxed);
  progress.wait.store(reason, std::memory_order_release);
}

Parking::Waiting::~Waiting() {
  parking_.progress_.wait.store(ipc::WaitState::kNothing, std::memory_order_release);
  ipc::CountWait(&parking_.page_.iteration_times, static_cast<uint64_t>(NowUs() - begin_us_));
  if (parking_.on_waited_) parking_.on_waited_(reason_, begin_us_);
}

}  // namespace worker
