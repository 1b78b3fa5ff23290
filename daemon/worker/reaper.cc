#include "daemon/worker/reaper.h"

#include <utility>

namespace worker {

Reaper::Reaper(std::function<void()> begin)
    : thread_([this, begin = std::move(begin)] { Serve(begin); }) {}

Reaper::~Reaper() {
  {
    const absl::MutexLock lock(&mutex_);
    ends_ = true;
  }
  thread_.join();
}

void Reaper::Later(std::function<void()> job) {
  const absl::MutexLock lock(&mutex_);
  jobs_.push_back(std::move(job));
}

void Reaper::Serve(const std::function<void()>& begin) {
  begin();
  for (;;) {
    std::function<void()> job;
    {
      const auto called = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return ends_ || !jobs_.empty();
      };
      const absl::MutexLock lock(&mutex_, absl::Condition(&called));
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

void Later(const Environment& environment, std::function<void()> job) {
  if (environment.reaper == nullptr) return job();
  environment.reaper->Later(std::move(job));
}

}  // namespace worker
