// Host memory that holds sessions' device memory for a while, and the way there and back.
//
// Copies go in chunks through two pinned buffers, on a stream of their own: while the device fills
// one, the other is emptied, and other sessions compute on. A worker's host memory for swapping is
// limited (`--swap`). Beyond the limit a session cannot be swapped out; running sessions notice
// nothing. Thread safety: SwapSpace: any thread; the rest: one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/common/swap_file.h"
#include "daemon/worker/memory_stream.h"
#include "daemon/worker/session.h"
#include "ipc/unique_fd.h"

namespace worker {

class SwapSpace {
 public:
  // limit_bytes < 0: half of this machine's memory.
  explicit SwapSpace(int64_t limit_bytes);

  // ResourceExhausted, in one sentence, when that is more than the limit leaves.
  absl::Status Take(uint64_t bytes);
  // What is there already counts, whatever the limit.
  void Force(uint64_t bytes) { used_.fetch_add(bytes); }
  void Give(uint64_t bytes) { used_.fetch_sub(bytes); }
  uint64_t limit_bytes() const { return limit_bytes_; }
  uint64_t used_bytes() const { return used_.load(); }

 private:
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> used_{0};
};

// The part of a session's file (daemon/common/swap_file.h) for its memory, mapped while it has any.
class SwapFile {
 public:
  // An invalid descriptor: one of its own, made when it is needed.
  explicit SwapFile(ipc::UniqueFd fd) : fd_(std::move(fd)) {}
  ~SwapFile() { Leave(); }
  SwapFile(const SwapFile&) = delete;

  // Room for the bytes of these. ResourceExhausted, in one sentence, when there is none.
  absl::Status Begin(SwapSpace* space, std::vector<common::SwapRecord> records);
  // They are all there: the file is what counts from now on.
  void Commit();
  bool holds() const { return committed_; }
  const std::vector<common::SwapRecord>& records() const { return records_; }
  std::byte* BytesOf(size_t record) const;
  uint64_t bytes() const;  // of all records
  // Empties it.
  void Clear();

  // Takes over what an earlier worker has committed, if anything.
  absl::Status Open(SwapSpace* space);
  // Leaves it as it is to the next worker.
  void Leave();

 private:
  absl::Status Map();
  void Publish(uint64_t count);
  void Forget();

  ipc::UniqueFd fd_;
  SwapSpace* space_ = nullptr;  // from which bytes() are taken, while records_ has some
  std::vector<common::SwapRecord> records_;
  std::byte* base_ = nullptr;
  uint64_t mapped_bytes_ = 0;
  bool committed_ = false;
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
