#include "cli/load/senders.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/mutex.h"

namespace load {
namespace {

constexpr int64_t kProgressUs = 1'000'000;
constexpr int64_t kLookUs = 50'000;  // how often *stop is looked at

std::chrono::steady_clock::time_point At(int64_t us) {
  return std::chrono::steady_clock::time_point(std::chrono::microseconds(us));
}

// The requests, taken in turn by threads of which there are as many as were ever needed at once.
class Senders {
 public:
  Senders(const SendingPlan& plan, const std::atomic<bool>& stop)
      : plan_(plan), stop_(stop), begin_us_(NowUs()), answers_(plan.requests.size()) {}

  // Makes requests due at their times, until all have ended.
  void Run(const std::function<void(const Progress&)>& on_progress) {
    int64_t shown_us = begin_us_;
    base::MutexLock lock(&mutex_);
    while (ended_ < due_ || (due_ < plan_.requests.size() && !Stopped())) {
      const int64_t now_us = NowUs();
      while (due_ < plan_.requests.size() && !Stopped() && DueUs(due_) <= now_us) MakeDue();
      if (Stopped()) {
        for (Client* const client : clients_) client->Interrupt();
      }
      if (now_us - shown_us >= kProgressUs) {
        shown_us = now_us;
        const Progress progress{plan_.requests.size(), taken_, ended_, failed_};
        lock.Unlock();
        on_progress(progress);
        lock.Lock();
        continue;
      }
      const int64_t next_us = due_ < plan_.requests.size() ? DueUs(due_) : now_us + kLookUs;
      changed_.WaitUntil(&mutex_, At(std::min(next_us, now_us + kLookUs)));
    }
    over_ = true;
    waiting_.NotifyAll();
  }

  // REQUIRES: Run() has returned.
  std::vector<Answer> Take() {
    for (std::thread& thread : threads_) thread.join();
    base::MutexLock lock(&mutex_);
    answers_.resize(taken_);
    return std::move(answers_);
  }

 private:
  bool Stopped() const { return stop_.load(std::memory_order_relaxed); }
  int64_t DueUs(size_t request) const { return begin_us_ + plan_.requests[request].due_us; }

  void MakeDue() REQUIRES(mutex_) {
    ++due_;
    if (idle_ < due_ - taken_ && threads_.size() < plan_.at_once) {
      threads_.emplace_back([this] { Ask(); });
    }
    waiting_.NotifyOne();
  }

  // A thread's life.
  void Ask() {
    Client client(plan_.server);
    base::MutexLock lock(&mutex_);
    clients_.push_back(&client);
    while (true) {
      ++idle_;
      while (taken_ == due_ && !over_) waiting_.Wait(&mutex_);
      --idle_;
      if (taken_ == due_) break;
      const size_t mine = taken_++;
      lock.Unlock();
      Answer answer = client.Ask(plan_.route, plan_.requests[mine].body, stop_);
      answer.due_us = DueUs(mine);
      lock.Lock();
      ++ended_;
      failed_ += answer.ok() ? 0 : 1;
      answers_[mine] = std::move(answer);
      changed_.NotifyOne();
    }
    clients_.erase(std::find(clients_.begin(), clients_.end(), &client));
  }

  const SendingPlan& plan_;
  const std::atomic<bool>& stop_;
  const int64_t begin_us_;
  std::vector<std::thread> threads_;  // of the thread that runs Run()

  base::Mutex mutex_;
  base::CondVar waiting_;                            // for requests
  base::CondVar changed_;                            // for Run()
  std::vector<Client*> clients_ GUARDED_BY(mutex_);  // one for each thread
  std::vector<Answer> answers_ GUARDED_BY(mutex_);
  size_t due_ GUARDED_BY(mutex_) = 0;
  size_t taken_ GUARDED_BY(mutex_) = 0;
  size_t ended_ GUARDED_BY(mutex_) = 0;
  size_t failed_ GUARDED_BY(mutex_) = 0;
  size_t idle_ GUARDED_BY(mutex_) = 0;  // threads that wait, or are about to
  bool over_ GUARDED_BY(mutex_) = false;
};

}  // namespace

std::vector<Answer> SendAll(const SendingPlan& plan, const std::atomic<bool>& stop,
                            const std::function<void(const Progress&)>& on_progress) {
  Senders senders(plan, stop);
  senders.Run(on_progress);
  return senders.Take();
}

}  // namespace load
