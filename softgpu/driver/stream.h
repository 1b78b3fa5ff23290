// A queue of operations that run in order.
//
// A stream thread (stream_threads.h) runs the queue; a thread that waits for the stream runs
// operations itself when nobody else does, so that short work costs no thread switch. Whoever runs
// operations holds `running_`; there is never more than one. Operations depend only on operations
// submitted before them, so waiting for a dependency can't end in a cycle. A stream thread does not
// wait for one: it leaves the stream `blocked_`, and whoever runs what it waits for goes on with
// it.
//
// Thread safety: every function may be called from any thread. Submission goes through Context,
// which orders the blocking streams among themselves.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "softgpu/driver/operation.h"
#include "softgpu/exec/spin.h"

namespace softgpu {

class Context;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<Context> context, unsigned flags, int priority);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const std::shared_ptr<Context>& context() const { return context_; }
  unsigned flags() const { return flags_; }
  int priority() const { return priority_.load(); }
  uint64_t id() const { return id_; }
  bool blocking() const { return (flags_ & CU_STREAM_NON_BLOCKING) == 0; }
  CUstream handle() { return reinterpret_cast<CUstream>(this); }

  // Appends and returns the operation's sequence number. `wake`: a stream thread shall run it;
  // false when the caller is about to Wait. Called by Context::Submit alone.
  uint64_t Push(std::unique_ptr<Operation> operation, bool wake);

  // Instead of a stream thread, for the operation that was pushed last without a wake: runs it here
  // when nothing is before it.
  void RunSubmitted(uint64_t sequence);

  // Returns when the queue has room for one more operation. A program may run ahead of its device,
  // as on hardware, by so much and no further: work that nobody bounds would fill the memory.
  void WaitForRoom();

  // Returns when everything up to `sequence` has run; runs it when it can.
  void Wait(uint64_t sequence);
  bool Done(uint64_t sequence) const { return completed_.load() >= sequence; }
  uint64_t submitted() const { return submitted_.load(); }
  bool Idle() const { return Done(submitted()); }

  // What cuStreamSetAttribute keeps.
  CUresult GetAttribute(CUstreamAttrID id, CUstreamAttrValue* value);
  CUresult SetAttribute(CUstreamAttrID id, const CUstreamAttrValue& value);
  void CopyAttributes(Stream& other);

  // No more work will come.
  void Close();
  bool closed() const { return closed_.load(); }

  // What a stream thread does: runs the stream's work, and then that of a stream which waited for
  // it, until there is none.
  static void Serve(std::shared_ptr<Stream> stream);

 private:
  using Streams = std::vector<std::shared_ptr<Stream>>;
  struct Follower {
    uint64_t sequence;
    std::shared_ptr<Stream> stream;
  };

  // Has a thread run what may run now, if none does. Lets go of the mutex for a while.
  void CallThread() REQUIRES(mutex_);
  bool TryRunHere(uint64_t sequence);  // false when the work is somebody else's
  bool Begin();     // sets running_; false: there is nothing to run, and this thread is gone
  bool TakeOver();  // sets running_, as a further stream thread
  void Leave();
  // Both REQUIRE: this thread set running_. RunQueue runs what may run here; RunAsThread returns
  // the stream to go on with, if any.
  void RunQueue(uint64_t sequence);
  std::shared_ptr<Stream> RunAsThread();
  std::unique_ptr<Operation> TakeFirst() REQUIRES(mutex_);
  bool Follows(const Operation& operation);  // an operation of another stream: blocked
  bool Follow(const Follower& follower);     // false: it is done
  void RunOne(std::unique_ptr<Operation> operation);
  Streams Complete();  // returns those that are not blocked any more
  void Unblock();
  void GoOn();

  const std::shared_ptr<Context> context_;
  const unsigned flags_;
  std::atomic<int> priority_;
  const uint64_t id_;

  std::atomic<uint64_t> submitted_{0}, completed_{0};
  std::atomic<uint64_t> waiters_{0};  // threads that sleep, and followers
  std::atomic<bool> closed_{false};
  Whereabouts submitter_, runner_;

  base::Mutex mutex_;
  base::CondVar progress_;  // waiters sleep here
  std::deque<std::unique_ptr<Operation>> queue_ GUARDED_BY(mutex_);
  std::vector<Follower> followers_ GUARDED_BY(mutex_);  // streams that are blocked by this one
  bool running_ GUARDED_BY(mutex_) = false;
  // Its first operation waits for another stream, which knows.
  bool blocked_ GUARDED_BY(mutex_) = false;
  int threads_ GUARDED_BY(mutex_) = 0;  // that serve it, or are called to
  std::map<int, CUstreamAttrValue> attributes_ GUARDED_BY(mutex_);  // by CUstreamAttrID
};

}  // namespace softgpu
