// Memory of the program's own that the device sees (cuMemHostRegister with a device mapping).
//
// The worker can't map pages of another process. So the pages under the program's addresses are
// exchanged for pages of the session's pinned window, with their contents, and the window's
// addresses are what the device uses: another number than the program's, as the device attribute
// CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM says. Whole pages are exchanged, one page at the ends and
// 2 MiB between them at a time; what another thread writes to a piece while it is copied is lost.
// That holds for another thread's stack and for the allocator's bookkeeping beside the memory, too.
// Freeing the memory before it is unregistered is the program's mistake, as with CUDA: its
// addresses then mean other memory, and keep it.
//
// A forked child gets pages of its own, with the contents of the moment of the fork: it must not
// write into its parent's heap. So each fork copies all memory that is shared at the time; a part
// for which there is no room stays the parent's. Thread safety: all methods.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "shim/lock_order.h"

namespace shim {

class RegisteredMemory {
 public:
  static RegisteredMemory& Process();

  // Shares [address, + bytes) with the worker at *device, unless it is shared; *made says which of
  // two threads that ask at once has shared it. CUDA_ERROR_NOT_SUPPORTED, which is said: these
  // pages can't be exchanged.
  CUresult Share(uint32_t wire, uint64_t address, size_t bytes, uint64_t* device, bool* made);
  // The range that begins at `address` gets pages of its own again, with what they hold now;
  // nothing when there is no such range. REQUIRES: no work on the device uses it.
  CUresult Unshare(uint32_t wire, uint64_t address);

  // The device's address of [address, + bytes), where all of it is shared.
  std::optional<uint64_t> DeviceOf(uint64_t address, size_t bytes) const;
  // The program's address of a device's.
  std::optional<uint64_t> HostOf(uint64_t device) const;
  // What the device and the program both see: the device's address, else `address` itself.
  uint64_t Seen(uint64_t address, size_t bytes) const {
    if (count_.load(std::memory_order_relaxed) == 0) return address;
    return DeviceOf(address, bytes).value_or(address);
  }

 private:
  struct Range {
    uint64_t bytes = 0;  // as registered
    uint64_t first_page = 0, page_bytes = 0;
    uint64_t window = 0;  // of first_page
  };
  RegisteredMemory();
  // Pages for a child that is being made, and where they go there.
  struct Copy {
    void* pages;
    uint64_t first_page, page_bytes;
  };
  static bool Exchange(const Range& range);
  // The parts of a range that the program has not unmapped; nothing: the kernel does not say.
  static std::optional<std::vector<Range>> StillShared(const Range& range);
  // False: there is no memory for all of it, and the rest stays shared.
  static bool PutBack(const Range& range);
  // The table is locked from before a fork until both processes have what is theirs.
  static void BeforeFork() NO_THREAD_SAFETY_ANALYSIS;
  static void AfterForkInParent() NO_THREAD_SAFETY_ANALYSIS;
  static void AfterForkInChild() NO_THREAD_SAFETY_ANALYSIS;

  base::Mutex making_ ACQUIRED_BEFORE(lock_order::kSending);
  mutable base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  std::map<uint64_t, Range> ranges_ GUARDED_BY(mutex_);  // by the program's address
  std::vector<Copy> copies_ GUARDED_BY(mutex_);
  std::atomic<size_t> count_{0};
};

}  // namespace shim
