// A short result that is on its way before it is asked for.
//
// Loops that train wait for the device, then copy one short result out: a round trip that wakes the
// worker for nothing else. When the same copy came right after each of the last two waits, the next
// wait sends it along with its mark, and the program's copy finds the bytes here. They are what
// lies in memory for as long as nothing was submitted since: every stream was idle, and nobody but
// the session writes to its memory. A wait for the legacy stream or the device can do this, on a
// machine with one device; elsewhere other streams' calls would have to be looked at, too.
// Thread safety: all methods.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "shim/copy.h"
#include "shim/lock_order.h"
#include "shim/state.h"

namespace shim {

class FetchAhead {
 public:
  static FetchAhead& Process();

  // The caller is about to wait for the legacy stream. True: a mark that covers everything before
  // it was sent, and the copy with it.
  bool Ask(const Stream& legacy);
  // A wait for a stream or the device has ended well.
  void OnSynchronized();
  // A copy from device to pageable memory. What it returns when the bytes were here; nothing: it
  // has to be made.
  std::optional<CUresult> Take(const Copy& copy);

 private:
  static constexpr int kFollowedMin = 2;

  struct Result {
    uint64_t address = 0;
    size_t bytes = 0;
    bool operator==(const Result&) const = default;
  };
  // What was sent and may be taken.
  struct Fetch {
    uint64_t ticket = 0;  // SessionPage::fetched, when its bytes are on the way; 0: none was sent
    Result result;
    Stream stream;
    uint64_t sequence = 0;  // of the mark that it came with
    uint64_t last_work = 0;
  };

  bool IsExpected() const { return followed_.load(std::memory_order_relaxed) >= kFollowedMin; }
  void Learn(const Result& result) REQUIRES(mutex_);
  void Forget() REQUIRES(mutex_);
  bool Send(const Stream& legacy) REQUIRES(mutex_);
  bool HasBytes(const Result& result) const REQUIRES(mutex_);

  base::Mutex mutex_ ACQUIRED_BEFORE(lock_order::kSending);
  Result expected_ GUARDED_BY(mutex_);
  // How many waits in a row the copy came right after, up to kFollowedMin. Written under the mutex.
  std::atomic<int> followed_{0};
  bool has_waited_ GUARDED_BY(mutex_) = false;  // and not copied since
  uint64_t work_waited_for_ GUARDED_BY(mutex_) = 0;
  Fetch fetch_ GUARDED_BY(mutex_);
  uint64_t last_ticket_ GUARDED_BY(mutex_) = 0;
  // Of the staging area, while a copy is expected.
  std::optional<unsigned> chunk_ GUARDED_BY(mutex_);
};

}  // namespace shim
