// What kernels of a session print, on its way to the program's own standard output.
//
// A circular buffer in the session file: the worker appends from the thread that ran the kernel,
// before the stream goes on; the client drains it where CUDA shows device printf, at its
// synchronising calls. Like the driver's own buffer it is bounded: what does not fit is lost. The
// other side may write anything: each clamps what it reads. Thread safety: one appender and one
// drainer at a time; each side brings a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ipc {

struct PrintArea {
  static constexpr size_t kBytes = 256u << 10;
  alignas(64) std::atomic<uint64_t> head;  // written by the worker
  alignas(64) std::atomic<uint64_t> tail;  // written by the client
  alignas(64) char text[kBytes];

  // False: it does not fit, nothing was written.
  bool Append(std::string_view more);
  bool empty() const {
    return head.load(std::memory_order_acquire) == tail.load(std::memory_order_relaxed);
  }
  // Takes out everything that is there.
  std::string Drain();
};

}  // namespace ipc
