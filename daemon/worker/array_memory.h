// A session's memory beside its arena: the arrays that the driver makes for the session.
//
// The worker counts it as the session's own, in units as large as extents: a driver, too, cuts
// small arrays out of larger blocks, and lanewayd counts in such units. Thread safety: one
// session's thread, but for bytes(), which is for any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "daemon/worker/jobs.h"
#include "ipc/calls/limits.h"

namespace worker {

class ArrayMemory {
 public:
  explicit ArrayMemory(std::shared_ptr<JobMemory> job) : job_(std::move(job)) {}
  ArrayMemory(const ArrayMemory&) = delete;

  // How much more must be counted before there is an array of so many bytes.
  uint64_t Shortfall(int device, uint64_t bytes) const {
    const Books& books = Of(device);
    const uint64_t needed = Rounded(books.exact + bytes);
    return needed > books.counted ? needed - books.counted : 0;
  }
  // Counts `growth` more, an earlier Shortfall(). False when the job would exceed its limit.
  bool Add(int device, uint64_t bytes, uint64_t growth) {
    if (!job_->Take(device, growth)) return false;
    Of(device).exact += bytes;
    Of(device).counted += growth;
    bytes_.fetch_add(growth, std::memory_order_relaxed);
    return true;
  }
  // After an Add(): the array could not be made.
  void Undo(int device, uint64_t bytes, uint64_t growth) {
    Of(device).exact -= bytes;
    GiveBack(device, growth);
  }
  // The array is gone. What is counted stays until Trim().
  void Remove(int device, uint64_t bytes) { Of(device).exact -= bytes; }
  // Counts no more than is needed; returns how much less that is. Not between a Shortfall() and its
  // Add().
  uint64_t Trim(int device) {
    const uint64_t less = Of(device).counted - Rounded(Of(device).exact);
    GiveBack(device, less);
    return less;
  }

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Books {
    uint64_t exact = 0, counted = 0;
  };
  Books& Of(int device) { return books_[static_cast<size_t>(device)]; }
  const Books& Of(int device) const { return books_[static_cast<size_t>(device)]; }
  void GiveBack(int device, uint64_t bytes) {
    Of(device).counted -= bytes;
    job_->Give(device, bytes);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  static uint64_t Rounded(uint64_t bytes) {
    constexpr uint64_t kUnit = ipc::limits::kExtentBytesMin;
    return (bytes + kUnit - 1) / kUnit * kUnit;
  }

  const std::shared_ptr<JobMemory> job_;
  std::array<Books, ipc::control::kDevicesMax> books_ = {};
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace worker
