// The CUDA error log: what cuLogs* shows. Sentences that explain an error code, newest last.
//
// The log keeps the last kEntriesMax entries; a callback sees every entry as it is made.
// CUDA_LOG_FILE gets a copy (base/cuda_log_file.h). Thread safety: every function may be called
// from any thread. Callbacks run on the thread that logs, with no lock held.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace softgpu {

class ErrorLog {
 public:
  static constexpr size_t kEntriesMax = 100;

  static ErrorLog& Get();  // never destroyed: streams may log while the process exits

  void Add(CUlogLevel level, std::string_view message);

  uint64_t Register(CUlogsCallback callback, void* data);
  bool Unregister(uint64_t id);

  uint32_t Current();  // the iterator of the next entry
  // The entries from `*from` on (everything kept when null), each ending in a newline; moves
  // `*from` to the end.
  std::string Dump(CUlogIterator* from, size_t bytes_max);

 private:
  struct Entry {
    uint32_t index;
    std::string line;
  };

  base::Mutex mutex_;
  std::deque<Entry> entries_ GUARDED_BY(mutex_);
  uint32_t next_index_ GUARDED_BY(mutex_) = 1;
  uint64_t next_callback_ GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, std::pair<CUlogsCallback, void*>> callbacks_ GUARDED_BY(mutex_);
};

// Logs `why` under the name of the call that this thread is in, and returns `code`.
CUresult Fail(CUresult code, std::string_view why);

// The same, and "softgpu: <why>" on stderr unless `said` was set before: for what ends a program
// that doesn't look into the log.
CUresult FailAloud(CUresult code, std::string_view why, std::atomic<bool>* said);

}  // namespace softgpu
