// Streams and events of the fake driver: queues of work that is done in order, at once where
// nothing is in the way.
//
// Work that has to wait is tried again whenever a stream or an event is asked after: the worker
// asks again and again while its device is busy. Thread safety: any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "base/mutex.h"
#include "ipc/driver_table.h"

namespace shim_test {

// Fills in what concerns streams and events.
void AddStreams(ipc::DriverTable* table);

class FakeStreams {
 public:
  static FakeStreams& Process();

  // Work that is done, or must wait still: then it says false and is tried again. It calls nothing
  // of this object.
  using Work = std::function<bool()>;

  // Keeps all work back until Release(), as if the device were busy.
  void Hold() EXCLUDES(mutex_);
  void Release() EXCLUDES(mutex_);

  void Submit(CUstream stream, Work work) EXCLUDES(mutex_);
  bool IsIdle(CUstream stream) EXCLUDES(mutex_);
  void Destroy(CUstream stream) EXCLUDES(mutex_);

  // The event is reached when the stream has done what it was given before.
  void Record(CUevent event, CUstream stream) EXCLUDES(mutex_);
  bool IsReached(CUevent event) EXCLUDES(mutex_);
  void Wait(CUstream stream, CUevent event) EXCLUDES(mutex_);

 private:
  struct Queue {
    std::deque<Work> work;
    uint64_t submitted = 0;
    uint64_t done = 0;
  };
  struct Point {
    CUstream stream;
    uint64_t submitted;  // on the stream, when the event was recorded
  };

  void Add(CUstream stream, Work work) REQUIRES(mutex_);
  void DoWhatCanBeDone() REQUIRES(mutex_);
  bool IsPast(const Point& point) const REQUIRES(mutex_);

  base::Mutex mutex_;
  bool held_ GUARDED_BY(mutex_) = false;
  std::map<CUstream, Queue> queues_ GUARDED_BY(mutex_);
  std::map<CUevent, Point> points_ GUARDED_BY(mutex_);
};

}  // namespace shim_test
