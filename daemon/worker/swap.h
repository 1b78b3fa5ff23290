// Host memory that holds sessions' device memory for a while, and the way there and back.
//
// Copies go in chunks through two pinned buffers, on a stream of their own: while the device fills
// one, the other is emptied, and other sessions compute on. What a worker may use is limited
// (`--swap`): beyond it a session cannot be swapped out, and nobody who runs notices. Thread
// safety: SwapSpace: any thread; the rest: one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "daemon/worker/memory_stream.h"
#include "daemon/worker/session.h"

namespace worker {

class SwapSpace {
 public:
  // limit_bytes < 0: half of this machine's memory.
  explicit SwapSpace(int64_t limit_bytes);

  // ResourceExhausted, in one sentence, when that is more than the limit leaves.
  absl::Status Take(uint64_t bytes);
  void Give(uint64_t bytes) { used_.fetch_sub(bytes); }
  uint64_t limit_bytes() const { return limit_bytes_; }
  uint64_t used_bytes() const { return used_.load(); }

 private:
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> used_{0};
};

// Memory of the host, taken from a SwapSpace and given back at the end.
class HostMemory {
 public:
  static absl::StatusOr<HostMemory> Create(SwapSpace* space, uint64_t bytes);
  HostMemory() = default;
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory();

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  SwapSpace* space_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Copies between device and pageable memory. One after the other, each complete when it returns.
class ChunkedCopy {
 public:
  static constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

  ChunkedCopy(const Environment& environment, int device);
  ~ChunkedCopy();
  ChunkedCopy(const ChunkedCopy&) = delete;

  CUresult Out(CUdeviceptr from, uint64_t bytes, std::byte* to);
  CUresult In(const std::byte* from, uint64_t bytes, CUdeviceptr to);

 private:
  static constexpr int kBuffers = 2;
  CUresult WaitFor(CUevent event);

  const Environment& environment_;
  MemoryStream stream_;
  CUresult status_ = CUDA_SUCCESS;
  void* buffers_[kBuffers] = {};
  CUevent done_[kBuffers] = {};
};

}  // namespace worker
