// Host functions and stream callbacks: the worker's stream stops at a mark and waits; here one
// service thread runs the function when the mark has come, and lets the stream go on.
//
// The thread starts with the first host function, with all signals blocked, so that the program's
// handlers run where the program expects them. Functions of one stream run in its order; all run
// one at a time, as CUDA allows. Thread safety: all methods.
#pragma once

#include <cstdint>
#include <deque>

#include "base/mutex.h"
#include "shim/lock_order.h"
#include "shim/state.h"

namespace shim {

class HostFunctions {
 public:
  static HostFunctions& Process();

  CUresult Launch(const Stream& stream, CUhostFn function, void* data);
  // The callback also runs when the session is lost, with its error, as CUDA's does.
  CUresult AddCallback(const Stream& stream, CUstream program, CUstreamCallback callback,
                       void* data);

 private:
  struct Entry {
    uint32_t slot = 0;
    uint64_t sequence = 0;
    uint64_t ticket = 0;
    CUhostFn function = nullptr;
    CUstreamCallback callback = nullptr;
    CUstream program = nullptr;
    void* data = nullptr;
  };
  CUresult Submit(const Stream& stream, Entry entry);
  bool StartThread();
  void Serve();
  bool TakeReady(Entry* entry) REQUIRES(mutex_);
  void FailAll(CUresult loss);

  base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  base::CondVar work_;
  std::deque<Entry> entries_ GUARDED_BY(mutex_);
  bool running_ GUARDED_BY(mutex_) = false;
};

}  // namespace shim
