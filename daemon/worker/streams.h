// A session's streams, and the ordering that CUDA promises for the legacy default stream.
//
// In a context shared by many sessions the driver's own default stream would order everyone with
// everyone. So each session has its own legacy stream per device, and every driver stream is
// non-blocking; work between the legacy stream and the session's blocking streams is ordered here
// by events, only when there was work since the last such order.
//
// A stream that the program destroys with work in it is ending. The program can't name the stream
// any more, waits for the session's work include the stream, and the stream goes when its work is
// done. Thread safety: one session's thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/worker/seen_devices.h"
#include "daemon/worker/session.h"
#include "daemon/worker/stream_owners.h"
#include "ipc/calls/limits.h"

namespace worker {

class StreamTable {
 public:
  struct Stream {
    CUstream driver = nullptr;
    CUevent order = nullptr;  // recorded to order other streams after this one
    uint32_t slot = 0;        // of completion words
    int device = 0;
    bool blocking = false;  // ordered with the legacy stream
    bool legacy = false;
    bool ending = false;        // destroyed by the program, with work
    uint64_t submitted = 0;     // ops so far
    uint64_t after_legacy = 0;  // blocking: legacy.submitted that this stream is already after
    uint64_t before_legacy =
        0;  // blocking: own `submitted` that the legacy stream is already after
  };

  // Hears of each use of a stream while it watches.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    // The next work of the session goes to the stream.
    virtual void OnUse(const Stream& stream) = 0;
    bool watches = false;
  };

  StreamTable(const Environment& environment, StreamOwner* owner, const SeenDevices& devices)
      : environment_(environment), owner_(owner), devices_(devices) {}
  ~StreamTable();
  StreamTable(const StreamTable&) = delete;

  // CUDA_ERROR_INVALID_VALUE for a slot that is no program's, or a live stream's. After an ending
  // stream of the same slot, whose marks come first.
  CUresult Create(uint32_t slot, unsigned flags, int priority, int device, Stream** created);
  // The stream goes, or is ending.
  CUresult Destroy(CUstream driver);
  // The stream behind a driver's handle, null when it is none that the program may name.
  Stream* OfDriver(CUstream driver);
  // The same among those that are ending.
  Stream* EndingOfDriver(CUstream driver);
  // The legacy stream of the device, made at its first use; null when the driver can't.
  Stream* Legacy(int device);
  // Orders the stream for one more op on it.
  void Use(Stream* stream);
  // `watcher` outlives the table.
  void SetWatcher(Watcher* watcher) { watcher_ = watcher; }
  // Every stream of the session waits for what the others have now. A stream that the session makes
  // later waits, too: memory that the session takes again may first be used there.
  void Join();
  // All streams: legacy ones, the program's, and last those that are ending. What this returned
  // before may have gone.
  std::vector<Stream*> All();
  void Clear();

 private:
  // REQUIRES: the current context is of the stream's device.
  CUresult Open(Stream* stream, int priority);
  void Close(Stream* stream);
  void After(Stream* later, Stream* earlier);
  void AfterBlocking(Stream* legacy, Stream* stream);
  void CloseEnded();  // those of ending_ whose work is done

  const Environment& environment_;
  StreamOwner* const owner_;  // told to Environment::owners for every stream
  const SeenDevices devices_;
  Watcher* watcher_ = nullptr;
  absl::flat_hash_map<CUstream, std::unique_ptr<Stream>> named_;
  std::vector<std::unique_ptr<Stream>> ending_;
  std::array<Stream, ipc::limits::kLegacySlots> legacy_;
  int blocking_count_ = 0;                                  // ending ones included
  std::array<CUevent, ipc::limits::kLegacySlots> joins_{};  // by device
  CUevent last_join_ = nullptr;                             // of joins_; null: no work was joined
};

}  // namespace worker
