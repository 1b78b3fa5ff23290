// What check=1 found in this process: said once on stderr and in the error log, and counted at
// exit, together with memory that was never freed. Thread safety: every function may be called from
// any thread.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <tuple>

#include "base/mutex.h"
#include "softgpu/exec/launch.h"

namespace softgpu {

class CheckLog {
 public:
  static CheckLog& Get();  // never destroyed: kernels may run while the process exits

  void Add(const Finding& finding);
  void AddFault();  // that a kernel ended with: said already
  // What is printed when the library is unloaded: after the program's own destructors have freed
  // what they own.
  std::string Summary();
  // Whether there was anything to say.
  bool FoundSomething() const { return found_; }

 private:
  base::Mutex mutex_;
  std::atomic<bool> found_{false};
  size_t faults_ GUARDED_BY(mutex_) = 0;
  // Launches that had the finding.
  std::map<std::tuple<Finding::Kind, std::string, int, int>, int> launches_ GUARDED_BY(mutex_);
};

}  // namespace softgpu
