// Where a session's thread waits for anything but a message, and how other threads reach it there.
//
// Other threads leave commands and lanewayd's answers here and ring the doorbell, which is the same
// word that messages ring. Commands change the session's memory, so they run when the device has
// nothing of the session; they run from the loop's top and from Until() and Nap(), never inside a
// condition. One request to lanewayd is open at a time. Parking drops an answer that no request
// expects, so the answer of an earlier daemon is never taken for a later daemon's.
//
// Thread safety: Ring(), Post(), Keep(), HasAnswer() from any thread; the rest on the session's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "ipc/control.h"
#include "ipc/session_file.h"

namespace worker {

class Parking {
 public:
  using Command = std::function<void()>;
  using Answer = std::variant<ipc::control::AssignLane, ipc::control::MemoryAnswer>;

  // Told of each Waiting at its end: its reason, and when it began (NowUs).
  using OnWaited = std::function<void(ipc::WaitState reason, int64_t begin_us)>;

  // `page` and `progress` outlive this object. `may_command` says whether commands may run now; it
  // is asked only when there are some. `on_waited` may be empty.
  Parking(ipc::SessionPage* page, ipc::Progress* progress, std::function<bool()> may_command,
          OnWaited on_waited = {});
  Parking(const Parking&) = delete;

  // Wakes the session's thread, also from a wait for a message.
  void Ring();
  void Post(Command command) EXCLUDES(mutex_);
  void Keep(const Answer& answer) EXCLUDES(mutex_);
  // An answer was kept that the session's thread has not taken yet.
  bool HasAnswer() const;

  // --- the session's thread
  // Other than 0: something besides messages waits (ipc::Receiver::SetInterrupt).
  std::atomic<uint32_t>* poked() { return &poked_; }
  bool IsPoked() const { return poked_.load(std::memory_order_relaxed) != 0; }

  // False: commands are left that must wait until the device has finished.
  bool RunCommands() EXCLUDES(mutex_);

  // A request goes out: its answer comes after this, and answers from before are void.
  void Expect();
  // No answer is waited for any more.
  void ExpectNone();
  // The answer to the open request, once; the request is closed then.
  template <class Kind>
  std::optional<Kind> Take() {
    const base::MutexLock lock(&mutex_);
    if (!answer_.has_value()) return std::nullopt;
    const Kind* const kept = std::get_if<Kind>(&*answer_);
    if (kept == nullptr) return std::nullopt;
    const Kind taken = *kept;
    answer_.reset();
    expects_ = false;
    return taken;
  }

  struct Wait {
    std::function<bool()> over;        // whether the wait is; called before and after commands
    std::function<int64_t()> nap_us;   // how long to sleep without a ring
    std::function<void()> in_between;  // after commands; may be empty
  };
  // Waits until `over`, and runs commands meanwhile.
  void Until(const Wait& wait);
  // Runs commands, then sleeps until the next ring, or for so long.
  void Nap(int64_t us);
  // The same without commands.
  void Sleep(int64_t us) const;

  // Tells the session's watchers what it waits for, as long as it lives.
  class Waiting {
   public:
    Waiting(Parking* parking, ipc::WaitState reason);
    ~Waiting();
    Waiting(const Waiting&) = delete;

   private:
    Parking& parking_;
    const ipc::WaitState reason_;
    const int64_t begin_us_;
  };

 private:
  std::atomic<uint32_t>* doorbell() const { return &page_.worker_doorbell; }

  ipc::SessionPage& page_;
  ipc::Progress& progress_;
  const std::function<bool()> may_command_;
  const OnWaited on_waited_;
  std::atomic<uint32_t> poked_{0};
  mutable base::Mutex mutex_;
  std::vector<Command> commands_ GUARDED_BY(mutex_);
  bool expects_ GUARDED_BY(mutex_) = false;
  std::optional<Answer> answer_ GUARDED_BY(mutex_);
};

}  // namespace worker
