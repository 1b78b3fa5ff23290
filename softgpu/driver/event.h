// An event: the last point of a stream that was recorded in it.
//
// A recording is a mark of its own, so that a wait keeps meaning the recording it saw, whatever is
// recorded later. Thread safety: every function may be called from any thread.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "graphs/capture.h"
#include "softgpu/driver/graph_types.h"
#include "softgpu/driver/operation.h"

namespace softgpu {

class Context;
class Stream;

class Event {
 public:
  // One recording. `at_ns` is 0 until the stream gets there.
  struct Mark {
    std::vector<Dependency> dependencies;         // what it stands for
    graphs::CaptureRecording<GraphUse> captured;  // in a capturing stream: this instead
    std::atomic<int64_t> at_ns{0};
    scheduler::streams::Timeline::Moment moment;  // in virtual time; set before the mark is
    bool Done() const;
    // The program sees that the recording is done. Returns when that was, in ns of virtual time if
    // there is any, else of real time.
    double Observe() const;
  };

  Event(uint64_t context_id, unsigned flags) : context_id_(context_id), flags_(flags) {}

  unsigned flags() const { return flags_; }
  bool timed() const { return (flags_ & CU_EVENT_DISABLE_TIMING) == 0; }
  uint64_t context_id() const { return context_id_; }
  CUevent handle() { return reinterpret_cast<CUevent>(this); }

  static int64_t NowNs();
  // REQUIRES: the stream doesn't capture.
  void Record(const std::shared_ptr<Stream>& stream);
  void RecordContext(Context& context);  // all work submitted to it so far
  void SetMark(std::shared_ptr<Mark> mark);
  // Null when nothing was recorded: such an event is complete.
  std::shared_ptr<Mark> mark() const;
  CUresult Synchronize() const;  // reports a fault of the streams it waited for

  // Milliseconds between two recordings, with the driver's rules about which events have a time.
  static CUresult Elapsed(const Event& start, const Event& end, float* milliseconds);

 private:
  const uint64_t context_id_;
  const unsigned flags_;
  mutable base::Mutex mutex_;
  std::shared_ptr<Mark> mark_ GUARDED_BY(mutex_);
};

// Makes what `stream` gets from now on wait for `mark`; joins the mark's capture when it is
// captured.
CUresult WaitForMark(const std::shared_ptr<Stream>& stream, const Event::Mark& mark);

}  // namespace softgpu
