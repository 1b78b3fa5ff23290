// Records a function of the program (functions/function.h): LANEWAY_RECORD_FUNCTION=FILE, which
// `laneway record` sets.
//
// The recorder sees each call as it is sent, and each wait of the program for the device. Where an
// iteration that repeats is over and the program has waited, the recorder copies all that outlives
// iterations (snapshot.h). The next iterations are samples; then the function is written. Recording
// begins anew when another loop repeats, so the file holds the program's last loop. What stands in
// the way is a sentence in FILE.why.
//
// Thread safety: all methods. OnSent runs under the send lock; the others REQUIRE that it is free.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "functions/iteration_watch.h"
#include "functions/recording.h"
#include "ipc/calls.h"
#include "ipc/codec.h"
#include "shim/iterations/history.h"
#include "shim/lock_order.h"

namespace shim::recording {

// One call that goes to the worker.
struct SentCall {
  ipc::Op op{};
  ipc::Values values = nullptr;
  std::span<const std::byte> message;         // header included
  const iterations::Op* operation = nullptr;  // null: no work of the device
  bool boundary = false;                      // an iteration begins with it
};

class Recorder {
 public:
  // Null: this process records nothing.
  static Recorder* Process();
  // Whether the calling thread's calls are the recorder's own: no work of the program.
  static bool IsOwnCall();

  explicit Recorder(std::string file);

  void OnSent(const SentCall& call) EXCLUDES(mutex_);
  // The program has waited for the device.
  void OnWaited() EXCLUDES(mutex_);
  // A copy to pageable memory is complete, and its bytes are there.
  void OnReadBack(std::span<const std::byte> bytes) EXCLUDES(mutex_);
  void OnAllocated(uint64_t base, uint64_t bytes) EXCLUDES(mutex_);

 private:
  static constexpr size_t kSamples = 4;
  static constexpr size_t kSnapshotsMax = 16;

  enum class Phase : uint8_t {
    kWatching,      // no iteration repeats yet, or not one that was recorded
    kSnapshotting,  // the recorder copies memory
    kProbing,       // memory was copied; the next call must begin an iteration
    kSampling,      // iterations are recorded
    kRecorded,      // the file is written
  };

  void BeginIteration() REQUIRES(mutex_);
  void Keep(const SentCall& call) REQUIRES(mutex_);
  void KeepUpload(ipc::Op op, uint64_t address, std::span<const std::byte> content)
      REQUIRES(mutex_);
  void KeepDownload(ipc::Op op, uint64_t address, uint64_t pinned, size_t bytes) REQUIRES(mutex_);
  void KeepCopy(const SentCall& call) REQUIRES(mutex_);
  void Settle() EXCLUDES(mutex_);
  bool IsIterationOver() const REQUIRES(mutex_);
  void TakeSnapshot() EXCLUDES(mutex_);
  void Finish() REQUIRES(mutex_);
  void Abandon(const std::string& why) REQUIRES(mutex_);
  void Say(const std::string& why) REQUIRES(mutex_);

  const std::string file_;
  base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  Phase phase_ GUARDED_BY(mutex_) = Phase::kWatching;
  functions::IterationWatch watch_ GUARDED_BY(mutex_);
  // Of the iteration under way: a call that no function can make, and whether there are ports.
  std::string obstacle_ GUARDED_BY(mutex_);
  bool uploads_ GUARDED_BY(mutex_) = false;
  bool downloads_ GUARDED_BY(mutex_) = false;
  size_t arriving_ GUARDED_BY(mutex_) = 0;  // copies to pageable memory that are not complete
  functions::Recording recording_ GUARDED_BY(mutex_);
  functions::RecordedIteration current_ GUARDED_BY(mutex_);
  struct Pinned {
    size_t call = 0;  // of the iteration under way
    uint64_t address = 0;
  };
  std::vector<Pinned> pinned_ GUARDED_BY(mutex_);
  ipc::Op continued_ GUARDED_BY(mutex_) = ipc::Op::kDriverEnd;  // of the last call's last piece
  size_t snapshots_ GUARDED_BY(mutex_) = 0;                     // that came to nothing, in a row
  uint64_t recorded_shape_ GUARDED_BY(mutex_) = 0;
  std::string said_ GUARDED_BY(mutex_);
};

}  // namespace shim::recording
