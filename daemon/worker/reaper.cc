#include "daemon/worker/reaper.h"

#include <utility>

#include "ipc/driver_table.h"

namespace worker {

Reaper::Reaper() : thread_([this] { Serve(); }) {}

Reaper::~Reaper() {
  {
    const base::MutexLock lock(&mutex_);
    ends_ = true;
  }
  called_.NotifyOne();
  thread_.join();
}

void Reaper::Later(std::function<void()> job) {
  {
    const base::MutexLock lock(&mutex_);
    jobs_.push_back(std::move(job));
  }
  called_.NotifyOne();
}

void Reaper::Serve() {
  for (;;) {
    std::function<void()> job;
    {
      const base::MutexLock lock(&mutex_);
      while (!ends_ && jobs_.empty()) called_.Wait(&mutex_);
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

void Later(const Environment& environment, std::function<void()> job) {
  if (environment.reaper == nullptr) return job();
  const ipc::DriverTable* const driver = environment.driver;
  CUcontext context = nullptr;
  driver->cuCtxGetCurrent(&context);
  environment.reaper->Later([driver, context, job = std::move(job)] {
    driver->cuCtxSetCurrent(context);
    job();
  });
}

}  // namespace worker
