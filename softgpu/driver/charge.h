// Bytes taken from a device's memory limit, given back when the object dies.
//
// Only what this process created is charged: imported extents are somebody else's.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace softgpu {

// How much of a device's memory is taken. Thread safety: every function may be called from any
// thread.
class MemoryLimit {
 public:
  explicit MemoryLimit(uint64_t total) : total_(total) {}

  bool Take(uint64_t bytes) {
    uint64_t used = used_.load();
    do {
      if (bytes > total_ || used > total_ - bytes) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
  }
  void Give(uint64_t bytes) { used_.fetch_sub(bytes); }

  uint64_t total() const { return total_; }
  uint64_t used() const { return used_.load(); }

 private:
  const uint64_t total_;
  std::atomic<uint64_t> used_{0};
};

class Charge {
 public:
  Charge() = default;
  // Check with taken(); an untaken charge gives nothing back.
  Charge(MemoryLimit* limit, uint64_t bytes) : bytes_(bytes) {
    if (limit->Take(bytes)) limit_ = limit;
  }
  Charge(Charge&& other) noexcept
      : limit_(std::exchange(other.limit_, nullptr)), bytes_(other.bytes_) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(limit_, other.limit_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Charge() {
    if (limit_ != nullptr) limit_->Give(bytes_);
  }

  bool taken() const { return limit_ != nullptr; }

 private:
  MemoryLimit* limit_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace softgpu
