// The staging area of the session file, cut into chunks, through which pageable memory is copied.
//
// A thread takes a chunk, fills the chunk or waits for its bytes, and gives the chunk back with the
// mark of the copy that uses it. The chunk is free again when the device has passed the mark. A
// thread may wait in Take() only while it holds no chunk, so threads that pipeline their copies
// cannot wait for each other in a circle.
// Thread safety: all methods.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"
#include "shim/lock_order.h"
#include "shim/state.h"

namespace shim {

class Staging {
 public:
  static constexpr size_t kChunkBytes = ipc::limits::kStagingChunkBytes;
  static constexpr unsigned kChunks = ipc::limits::kStagingBytes / ipc::limits::kStagingChunkBytes;

  static Staging& Process();

  // Waits for a free chunk. Fails only with the session.
  CUresult Take(unsigned* chunk);
  // False when none is free right now.
  bool TryTake(unsigned* chunk);
  // The chunk may be used again when the stream has passed `sequence`; 0: at once.
  void Give(unsigned chunk, const Stream& stream, uint64_t sequence);

  static uint64_t OffsetOf(unsigned chunk) { return uint64_t{chunk} * kChunkBytes; }
  static std::byte* BytesOf(unsigned chunk);

 private:
  struct Chunk {
    bool taken = false;
    Stream stream;          // of the last use
    uint64_t sequence = 0;  // 0: free
  };
  bool TakeFree(unsigned* chunk) REQUIRES(mutex_);

  base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  base::CondVar given_;
  std::array<Chunk, kChunks> chunks_ GUARDED_BY(mutex_);
  unsigned next_ GUARDED_BY(mutex_) = 0;  // where the next search begins
};

}  // namespace shim
