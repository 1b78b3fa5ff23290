// Memory for random kernels: buffers with a gap between them, at addresses that the software GPU
// takes for device memory. Thread safety: none.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>

#include "ipc/calls/limits.h"
#include "scheduler/streams/range.h"
#include "tests/replay/random_kernel.h"

namespace replay::testing {

class Buffers {
 public:
  Buffers() {
    void* const at =
        mmap(reinterpret_cast<void*>(ipc::limits::kWindowBase + (1ull << 32)), kBuffers * kStride,
             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("no memory in the window");
    base_ = reinterpret_cast<uint64_t>(at);
  }
  ~Buffers() { munmap(reinterpret_cast<void*>(base_), kBuffers * kStride); }

  uint64_t Begin(int k) const { return base_ + static_cast<uint64_t>(k) * kStride; }
  std::optional<scheduler::streams::Range> At(uint64_t address) const {
    for (int k = 0; k < kBuffers; ++k) {
      if (address >= Begin(k) && address < Begin(k) + kBufferBytes) {
        return scheduler::streams::Range{Begin(k), kBufferBytes};
      }
    }
    return std::nullopt;
  }
  // Numbers in memory are small, so that eight bytes of them are an index, and no address.
  void Fill(std::mt19937_64* random) const {
    for (size_t k = 0; k < bytes(); ++k)
      data()[k] = k % 8 == 0 ? std::byte((*random)() % 32) : std::byte{0};
  }
  std::byte* data() const { return reinterpret_cast<std::byte*>(base_); }
  static constexpr size_t bytes() { return kBuffers * kStride; }

 private:
  static constexpr uint64_t kStride = 2 * kBufferBytes;
  uint64_t base_ = 0;
};

}  // namespace replay::testing
