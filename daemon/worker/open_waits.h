// The values that a session's streams wait for (cuStreamWaitValue*).
//
// CUDA ends such a wait by nothing but the value. When the session ends, nobody of its program is
// left to write it, and the stream, with all that lies under it, would stay until the worker does.
// So the worker writes what they wait for itself, one wait of each stream after the other.
//
// A wait is known to be over by an event behind it. Thread safety: any thread; no lock is held
// while the driver is called for a wait, as that call may itself wait for room in the stream.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/worker/session.h"

namespace worker {

class OpenWaits {
 public:
  struct Wait {
    CUdeviceptr address = 0;
    uint64_t value = 0;
    unsigned flags = 0;
    bool wide = false;  // 64 bits
  };

  explicit OpenWaits(const Environment& environment) : environment_(environment) {}
  ~OpenWaits();
  OpenWaits(const OpenWaits&) = delete;

  // What ends the wait. False: no value does, as none has a bit of 0, nor lacks one of all.
  static bool Answer(const Wait& wait, uint64_t* value);

  // Puts the wait on the stream. CUDA_ERROR_INVALID_VALUE when no value can end it.
  CUresult Add(CUstream stream, const Wait& wait);
  // Writes what one open wait of each stream waits for; to be called until the streams are done.
  // Several that wait for one word have their turns. REQUIRES: the words are the session's still,
  // as they are while it waits for its streams.
  void AnswerFirst();
  // All streams are done.
  void Clear();

  // While one lives, the calling thread's waits are this session's: what the hooked functions of a
  // table put on streams.
  class Current {
   public:
    explicit Current(OpenWaits* waits);
    ~Current();
    Current(const Current&) = delete;
  };
  static void Hook(ipc::DriverTable* table);

 private:
  struct Open {
    Wait wait;
    int device = 0;
    CUevent after = nullptr;  // null: the driver has not taken the wait yet
  };
  void Forget(std::deque<Open>* waits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int CurrentDevice() const;

  const Environment& environment_;
  absl::Mutex mutex_;
  std::map<CUstream, std::deque<Open>> waits_ ABSL_GUARDED_BY(mutex_);
  std::vector<CUevent> spare_ ABSL_GUARDED_BY(mutex_);
  uint64_t turn_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace worker
