// How much device memory each job of this worker has, and may have (`laneway run --memory`).
//
// A job's share is its persistent ranges and the parts of lanes that its sessions have reserved.
// The job asks for both itself, so a limit on both fails with code 2 only by the job's own doing. A
// job that has sessions in several workers (contained mode) is counted in each by itself. Thread
// safety: all methods from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "ipc/control.h"

namespace worker {

class JobMemory {
 public:
  // False when the job would exceed its limit on the device; nothing is taken then.
  bool Take(int device, uint64_t bytes) {
    std::atomic<uint64_t>& used = used_[static_cast<size_t>(device)];
    uint64_t before = used.load();
    do {
      const uint64_t limit = limit_.load();
      if (limit != 0 && (bytes > limit || before > limit - bytes)) return false;
    } while (!used.compare_exchange_weak(before, before + bytes));
    return true;
  }
  // What the worker itself needs for it: counted, never refused.
  void Force(int device, uint64_t bytes) { used_[static_cast<size_t>(device)].fetch_add(bytes); }
  void Give(int device, uint64_t bytes) { used_[static_cast<size_t>(device)].fetch_sub(bytes); }

  uint64_t used(int device) const { return used_[static_cast<size_t>(device)].load(); }
  uint64_t limit() const { return limit_.load(); }  // 0: none
  // A limit below what is used refuses growth; nothing is taken away.
  void SetLimit(uint64_t bytes) { limit_.store(bytes); }

 private:
  std::atomic<uint64_t> limit_{0};
  std::array<std::atomic<uint64_t>, ipc::control::kDevicesMax> used_ = {};
};

class JobBooks {
 public:
  // The job's books, shared by its sessions; gone with the last of them. The newest limit holds; a
  // session that names none (0) changes nothing.
  std::shared_ptr<JobMemory> Of(uint64_t job_id, uint64_t limit_bytes) {
    const base::MutexLock lock(&mutex_);
    std::erase_if(jobs_, [](const Jobs::value_type& entry) { return entry.second.expired(); });
    std::shared_ptr<JobMemory> job = jobs_[job_id].lock();
    if (job == nullptr) jobs_[job_id] = job = std::make_shared<JobMemory>();
    if (limit_bytes != 0) job->SetLimit(limit_bytes);
    return job;
  }
  void SetLimit(uint64_t job_id, uint64_t limit_bytes) {
    const base::MutexLock lock(&mutex_);
    const Jobs::iterator found = jobs_.find(job_id);
    if (found == jobs_.end()) return;
    if (const std::shared_ptr<JobMemory> job = found->second.lock()) job->SetLimit(limit_bytes);
  }

 private:
  using Jobs = std::map<uint64_t, std::weak_ptr<JobMemory>>;
  base::Mutex mutex_;
  Jobs jobs_ GUARDED_BY(mutex_);
};

}  // namespace worker
