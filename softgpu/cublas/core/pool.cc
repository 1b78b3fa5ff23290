#include "softgpu/cublas/core/pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <system_error>
#include <thread>

#include "base/mutex.h"

namespace softgpu::cublas {
namespace {

constexpr unsigned kThreadsMax = 16;

// One ParallelFor. Helpers that come late find no part left and drop it.
struct Loop {
  Loop(int64_t parts, const std::function<void(int64_t)>& part) : parts(parts), part(&part) {}

  // Takes parts until none is left.
  void Work() {
    for (;;) {
      const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= parts) return;
      (*part)(index);
      if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) {
        const base::MutexLock lock(&mutex);
        finished.NotifyAll();
      }
    }
  }

  void WaitUntilDone() {
    base::MutexLock lock(&mutex);
    while (done.load(std::memory_order_acquire) != parts) finished.Wait(&mutex);
  }

  const int64_t parts;
  const std::function<void(int64_t)>* const part;  // valid until the last part is done
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done{0};
  base::Mutex mutex;
  base::CondVar finished;
};

// The caller's thread counts as one, so a machine with one core gets no helper.
unsigned HelperCount() {
  return std::min(kThreadsMax, std::max(1u, std::thread::hardware_concurrency())) - 1;
}

class Pool {
 public:
  static Pool& Get() {
    static Pool* const pool = new Pool;  // never destroyed: helpers use it until the process ends
    return *pool;
  }

  unsigned helpers() const { return helpers_; }

  void Offer(const std::shared_ptr<Loop>& loop, unsigned times) {
    {
      const base::MutexLock lock(&mutex_);
      for (unsigned i = 0; i < times; ++i) offers_.push_back(loop);
    }
    if (times == 1) {
      available_.NotifyOne();
    } else {
      available_.NotifyAll();
    }
  }

 private:
  Pool() {
    sigset_t blocked, previous;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &previous);
    for (unsigned i = 0; i < HelperCount(); ++i) {
      try {
        std::thread([this] { Run(); }).detach();
        ++helpers_;
      } catch (const std::system_error&) {
        break;  // at a limit of threads: callers do more themselves
      }
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  }

  [[noreturn]] void Run() {
    pthread_setname_np(pthread_self(), "softgpu-blas");
    for (;;) {
      std::shared_ptr<Loop> loop;
      {
        base::MutexLock lock(&mutex_);
        while (offers_.empty()) available_.Wait(&mutex_);
        loop = std::move(offers_.front());
        offers_.pop_front();
      }
      loop->Work();
    }
  }

  base::Mutex mutex_;
  base::CondVar available_;
  std::deque<std::shared_ptr<Loop>> offers_ GUARDED_BY(mutex_);
  unsigned helpers_ = 0;
};

}  // namespace

void ParallelFor(int64_t parts, const std::function<void(int64_t)>& part) {
  if (parts <= 1) {
    if (parts == 1) part(0);
    return;
  }
  Pool& pool = Pool::Get();
  if (pool.helpers() == 0) {
    for (int64_t index = 0; index < parts; ++index) part(index);
    return;
  }
  const std::shared_ptr<Loop> loop = std::make_shared<Loop>(parts, part);
  pool.Offer(loop, static_cast<unsigned>(std::min<int64_t>(pool.helpers(), parts - 1)));
  loop->Work();
  loop->WaitUntilDone();
}

}  // namespace softgpu::cublas
