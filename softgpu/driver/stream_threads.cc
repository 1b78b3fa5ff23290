#include "softgpu/driver/stream_threads.h"

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

#include "base/mutex.h"
#include "softgpu/driver/stream.h"

namespace softgpu {
namespace {

// Signals are the application's: none shall be delivered to a thread it doesn't know. Faults of
// kernels arrive as SIGSEGV, SIGBUS and SIGFPE, which stay open.
void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
    sigdelset(&all, signal);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

StreamThreads& StreamThreads::Get() {
  static StreamThreads* const threads = new StreamThreads;
  return *threads;
}

// Whoever spins may take the stream while this thread is still waking one that sleeps.
void StreamThreads::Call(std::shared_ptr<Stream> stream) {
  base::MutexLock lock(&mutex_);
  called_.push_back(std::move(stream));
  calls_.store(called_.size());
  const bool asleep = sleeping_ != 0;
  const bool too_few = sleeping_ + spinning_.load() < called_.size();
  lock.Unlock();
  if (asleep) calling_.NotifyOne();
  if (too_few) AddThread();
}

std::shared_ptr<Stream> StreamThreads::TakeFirst() {
  std::shared_ptr<Stream> stream = std::move(called_.front());
  called_.pop_front();
  calls_.store(called_.size());
  return stream;
}

std::shared_ptr<Stream> StreamThreads::EndSpin(bool has_work) {
  base::MutexLock lock(&mutex_);
  const size_t others = spinning_.fetch_sub(1) - 1;
  if (called_.empty()) return nullptr;
  if (!has_work) return TakeFirst();
  if (sleeping_ + others < called_.size()) AddThread();  // nobody else is left to take it
  return nullptr;
}

void StreamThreads::AddThread() {
  std::thread([this] { Main(); }).detach();
}

void StreamThreads::Main() {
  BlockSignals();
  pthread_setname_np(pthread_self(), "softgpu-stream");
  for (;;) {
    base::MutexLock lock(&mutex_);
    ++sleeping_;
    while (called_.empty()) calling_.Wait(&mutex_);
    --sleeping_;
    std::shared_ptr<Stream> stream = TakeFirst();
    lock.Unlock();
    Stream::Serve(std::move(stream));
  }
}

}  // namespace softgpu
