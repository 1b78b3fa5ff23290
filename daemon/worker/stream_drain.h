// Waits until the device has done what a session has submitted, although a stream may wait for a
// client that is gone: for a host function's acknowledgement, or for a value that no program writes
// any more. The drain writes both itself.
//
// No interface of CUDA cancels a running kernel, so a drain takes as long as the last kernel does.
// Thread safety: Stop() is for any one other thread, the rest is the session's thread's.
#pragma once

#include <cstdint>
#include <thread>

#include "base/mutex.h"
#include "daemon/worker/open_waits.h"
#include "daemon/worker/session.h"
#include "daemon/worker/streams.h"
#include "ipc/session_file.h"

namespace worker {

class StreamDrain {
 public:
  // Both outlive this object.
  StreamDrain(const Environment& environment, ipc::SessionFile* file)
      : environment_(environment), file_(*file), waits_(environment) {}
  ~StreamDrain();
  StreamDrain(const StreamDrain&) = delete;

  // The values that the session's streams wait for.
  OpenWaits* waits() { return &waits_; }

  // The session ends. Its thread may be inside the driver, where it waits for room in a stream that
  // waits for the client: a thread of the drain lets streams go on until Finish().
  void Stop();
  // The session's streams are done, or another worker's.
  void Finish() EXCLUDES(mutex_);

  // From now on no stream waits for the client's acknowledgement, whatever the client writes.
  void CutHeldStreams();
  // Returns when the streams have done everything. On a poisoned device it does not return: the
  // process is about to exit, and until then callbacks use what the session holds.
  void WaitForStreams(StreamTable* streams);
  // After WaitForStreams() of a session that goes on: streams wait for the client again.
  void HoldAgain();

 private:
  void ReleaseHeldStreams();
  void ReleaseUntilDone() EXCLUDES(mutex_);
  bool AwaitFinish(int64_t us) EXCLUDES(mutex_);

  const Environment& environment_;
  ipc::SessionFile& file_;
  OpenWaits waits_;
  std::thread releaser_;  // runs ReleaseUntilDone() from Stop() on
  base::Mutex mutex_;
  base::CondVar finished_;
  bool is_finished_ GUARDED_BY(mutex_) = false;
};

}  // namespace worker
