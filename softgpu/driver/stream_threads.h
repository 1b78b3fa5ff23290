// The threads that run streams: as many as streams have had work at the same time. A thread that
// has nothing to do spins shortly, then sleeps; one that still spins is quicker than one that must
// be woken on another core, so whichever comes first takes a stream that calls. Thread safety: all
// methods from any thread.
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "base/mutex.h"
#include "softgpu/exec/spin.h"

namespace softgpu {

class Stream;

class StreamThreads {
 public:
  // Lives as long as the process: so do the threads.
  static StreamThreads& Get();
  StreamThreads() = default;
  StreamThreads(const StreamThreads&) = delete;

  // A thread serves the stream soon: calls Stream::Serve(stream), or gets it from AwaitCall.
  void Call(std::shared_ptr<Stream> stream);

  // For a thread without work: spins until ready(), which `other` may bring about, or until a
  // stream calls, which is returned.
  template <class Ready>
  std::shared_ptr<Stream> AwaitCall(const Ready& ready, const Whereabouts& other) {
    spinning_.fetch_add(1);
    SpinUntil([&] { return ready() || calls_.load() != 0; }, other);
    return EndSpin(ready());
  }

 private:
  void Main();
  std::shared_ptr<Stream> EndSpin(bool has_work);
  std::shared_ptr<Stream> TakeFirst() REQUIRES(mutex_);  // REQUIRES: called_ is not empty
  void AddThread();

  base::Mutex mutex_;
  base::CondVar calling_;
  std::deque<std::shared_ptr<Stream>> called_ GUARDED_BY(mutex_);
  std::atomic<size_t> calls_{0};  // how many these are
  std::atomic<size_t> spinning_{0};
  size_t sleeping_ GUARDED_BY(mutex_) = 0;
};

}  // namespace softgpu
