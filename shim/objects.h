// What the client knows about each of the program's driver objects, so that most calls need no
// answer. Which object a handle means: shim/state.h, shim/streams.h.
//
// Thread safety: members are written before the object's handle is given to the program, except for
// atomics and for what has a lock of its own, said beside it.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ipc/calls/laneway_calls.h"
#include "shim/known_ranges.h"
#include "shim/lock_order.h"

namespace shim {

struct Context {
  uint32_t wire = 0;  // MessageHeader::context
  int device = 0;
  bool primary = false;
  std::atomic<bool> active{true};  // a primary context: retained
  std::atomic<unsigned> flags{0};
  unsigned api_version = 0;
  std::atomic<int> attached{1};  // cuCtxAttach, cuCtxDetach
  std::atomic<uint64_t> id{0};
  std::atomic<const ipc::DeviceInfo*> info{nullptr};  // fetched at the first launch
};

struct Stream {
  uint32_t slot = 0;
  uint64_t value = 0;    // what messages carry; 0: the legacy stream
  uint64_t context = 0;  // 0: a legacy stream, any context of its device
  uint32_t wire = 0;     // MessageHeader::context
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  bool legacy = false;
  bool made = false;  // the fields above are set; a walk of another thread skips it before

  void SetMade() { std::atomic_ref<bool>(made).store(true, std::memory_order_release); }
  bool IsMade() { return std::atomic_ref<bool>(made).load(std::memory_order_acquire); }
};

// The handle by which the program names the stream.
inline CUstream ProgramOf(const Stream& stream) { return reinterpret_cast<CUstream>(stream.value); }

// Counters of a completion slot; they outlive its streams. Written under the send lock.
struct Slot {
  std::atomic<uint64_t> sequence{0};  // the last one given
  // The mark that covers everything sent on the stream so far, if clean (Streams::IsClean).
  std::atomic<uint64_t> covering{0};
  std::atomic<uint64_t> last_call{0};  // Client::submitted() when the stream was last used
  std::atomic<uint64_t> marked_at{0};  // Client::submitted() when `covering` was sent
  std::atomic<int> device{-1};         // of the streams that used it; -1: none yet
  std::atomic<uint32_t> calls{0};      // counted by Throttle (sync.h)
  std::atomic<uint64_t> gate{0};       // Throttle's last mark
  uint64_t ticket = 0;                 // of host functions
};

struct Event {
  unsigned flags = 0;
  uint64_t context = 0;
  uint32_t wire = 0;
  int device = 0;
  // slot << 48 | sequence of the last record; 0: never recorded (a slot's sequences begin at 1).
  std::atomic<uint64_t> recorded{0};
  std::atomic<bool> captured{false};  // the last record was in a capture (graphs/capture.h)
};

struct Array {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  uint64_t context = 0;
  uint32_t wire = 0;
  uint64_t mipmap = 0;  // whose level it is; 0: an array of its own
};

struct MipmappedArray {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};  // of the first level
  unsigned levels = 0;
  uint64_t context = 0;
  uint32_t wire = 0;
  base::Mutex mutex ACQUIRED_BEFORE(lock_order::kSending);
  std::map<unsigned, uint64_t> arrays GUARDED_BY(mutex);  // levels that the program has asked for
};

// A part of an executable graph that the worker has (graphs/pieces.h).
struct GraphPiece {
  uint64_t context = 0;
  uint32_t wire = 0;
  mutable base::Mutex mutex ACQUIRED_AFTER(lock_order::kKeeping);
  std::vector<uint64_t> modules GUARDED_BY(mutex);  // of its kernels
};

struct Module {
  uint64_t context = 0;
  uint32_t wire = 0;
  int device = 0;
  ipc::ModuleHash image;
  base::Mutex mutex ACQUIRED_BEFORE(lock_order::kSending);
  std::map<std::string, uint64_t, std::less<>> functions GUARDED_BY(mutex);  // by name
  // Variables whose address the program has asked for, by name.
  mutable base::Mutex variables_mutex ACQUIRED_AFTER(lock_order::kKeeping);
  std::map<std::string, KnownRanges::Range> variables GUARDED_BY(variables_mutex);
};

struct Function {
  std::string name;
  uint64_t module = 0;
  uint64_t context = 0;
  uint32_t wire = 0;
  ipc::FunctionInfo info;
  std::vector<ipc::ParamLayout> params;
  bool params_are_dense = false;  // no bytes lie between them
  base::Mutex attributes_mutex
      ACQUIRED_AFTER(lock_order::kKeeping);  // of info.attributes, which cuFuncSetAttribute changes
};

}  // namespace shim
