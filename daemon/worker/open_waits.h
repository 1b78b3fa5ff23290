// The values that a session's streams wait for (cuStreamWaitValue*).
//
// CUDA ends such a wait by the value alone. A program that has ended writes no value, and its
// stream, with all memory under it, would stay until the worker exits. So the worker writes the
// values itself, one wait of each stream after the other.
//
// An event behind each wait tells when the wait is over. Thread safety: any thread. No lock is held
// while the driver takes a wait, as that call may itself wait for room in the stream.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "base/mutex.h"
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

  // The value that ends the wait. False: none does (AND with 0, NOR with all bits).
  static bool Answer(const Wait& wait, uint64_t* value);

  // Puts the wait on the stream. CUDA_ERROR_INVALID_VALUE when no value can end it.
  CUresult Add(CUstream stream, const Wait& wait);
  // Writes the value for the first open wait of each stream; to be called until the streams are
  // done. Waits for one word take turns. REQUIRES: the words are still the session's, as they are
  // while the session waits for its streams.
  void AnswerFirst();
  // All streams are done.
  void Clear();

  // While one lives, waits that the calling thread puts on streams, by a table's hooked functions,
  // belong to this session.
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
  void Forget(std::deque<Open>* waits) REQUIRES(mutex_);
  int CurrentDevice() const;

  const Environment& environment_;
  base::Mutex mutex_;
  std::map<CUstream, std::deque<Open>> waits_ GUARDED_BY(mutex_);
  std::vector<CUevent> spare_ GUARDED_BY(mutex_);
  uint64_t turn_ GUARDED_BY(mutex_) = 0;
};

}  // namespace worker
