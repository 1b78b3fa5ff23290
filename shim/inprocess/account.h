// The device memory that the program has allocated by itself: asked for at lanewayd before it is
// allocated, reported when it is gone.
//
// lanewayd is asked in steps of 2 MiB, and what is freed is given back a moment later (Trim()), so
// that a program that allocates and frees in every iteration asks once. Without a daemon everything
// is allowed, and the next hello tells of it. From that hello until its answer allocations wait,
// and nothing is given back: lanewayd counts the memory that the hello names.
// Thread safety: all methods from any thread.
#pragma once

#include "base/mutex.h"
#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "ipc/control.h"
#include "shim/iterations/iterations.h"

namespace shim::inprocess {

// What an allocation is freed by: an address, a handle; equal numbers of different kinds differ.
enum class Kind : uint64_t { kMemory, kPhysical, kArray };

class Account {
 public:
  // The way to lanewayd. Answers come by OnAnswer() and OnReply(), from any thread.
  struct Hooks {
    std::function<uint64_t()> session_id;
    std::function<void(const ipc::control::ProgramToDaemon&)> tell;
  };
  // `iterations` outlives this object.
  Account(Hooks hooks, iterations::Iterations* iterations)
      : hooks_(std::move(hooks)), iterations_(iterations) {}
  Account(const Account&) = delete;

  // Waits until lanewayd lets the program have `bytes` more, or refuses.
  CUresult Take(uint64_t bytes);
  void Give(uint64_t bytes);

  // What was taken for an allocation; Forget() returns it, 0 for what was not remembered.
  void Remember(Kind kind, uint64_t name, uint64_t bytes);
  uint64_t Forget(Kind kind, uint64_t name);

  // free and total of the device as lanewayd sees it; nothing without one.
  std::optional<ipc::control::MemoryReply> Look(uint32_t device);

  // Gives back what is no longer used.
  void Trim();
  bool has_surplus() const { return surplus_.load(std::memory_order_relaxed); }

  // --- from the link, of which one thread calls
  uint64_t OnHello();  // returns the bytes that the hello tells of
  void OnUp();         // lanewayd has taken the hello
  void OnDown();       // it has gone, or it has not taken the hello
  void OnAnswer(const ipc::control::MemoryAnswer& answer);
  void OnReply(const ipc::control::MemoryReply& reply);

 private:
  enum class Daemon { kAway, kGreeted, kThere };

  // Nothing when lanewayd has gone meanwhile. Lets go of the mutex while it waits.
  template <class Answer>
  std::optional<Answer> Ask(const ipc::control::ProgramToDaemon& question,
                            std::optional<Answer>* slot) REQUIRES(asking_, mutex_);
  void NoteSurplus() REQUIRES(mutex_);

  const Hooks hooks_;
  iterations::Iterations* const iterations_;
  base::Mutex asking_ ACQUIRED_BEFORE(mutex_);  // one question at a time
  mutable base::Mutex mutex_;
  base::CondVar heard_;  // an answer, or another state of the daemon
  Daemon daemon_ GUARDED_BY(mutex_) = Daemon::kAway;
  std::optional<ipc::control::MemoryAnswer> answer_ GUARDED_BY(mutex_);
  std::optional<ipc::control::MemoryReply> reply_ GUARDED_BY(mutex_);
  uint64_t downs_ GUARDED_BY(mutex_) = 0;  // times that the daemon went away
  uint64_t used_bytes_ GUARDED_BY(mutex_) = 0;
  uint64_t counted_bytes_ GUARDED_BY(mutex_) = 0;  // by the daemon; at least used_bytes_ if kThere
  std::unordered_map<uint64_t, uint64_t> sizes_[3] GUARDED_BY(mutex_);
  std::atomic<bool> surplus_{false};
};

}  // namespace shim::inprocess
