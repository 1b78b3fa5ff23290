#include "shim/pinned_window.h"

#include <errno.h>
#include <sys/mman.h>

#include "ipc/calls/limits.h"
#include "shim/client.h"
#include "shim/stderr_once.h"

namespace shim {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14

std::atomic<bool> said_no_window;

size_t Rounded(size_t bytes) { return (bytes + kPageBytes - 1) & ~(kPageBytes - 1); }

}  // namespace

PinnedWindow& PinnedWindow::Process() {
  static PinnedWindow* const window = new PinnedWindow;
  return *window;
}

bool PinnedWindow::FindRoom(size_t bytes, uint64_t* address) {
  for (std::map<uint64_t, uint64_t>::iterator it = free_bytes_.begin(); it != free_bytes_.end();
       ++it) {
    if (it->second < bytes) continue;
    const uint64_t rest = it->second - bytes;
    *address = it->first;
    free_bytes_.erase(it);
    if (rest != 0) free_bytes_[*address + bytes] = rest;
    return true;
  }
  const uint64_t base = Client::Process().arena_base() + ipc::limits::kDeviceArenaBytes;
  if (end_ == 0) end_ = base;
  if (base + ipc::limits::kPinnedWindowBytes - end_ < bytes) return false;
  *address = end_;
  end_ += bytes;
  return true;
}

CUresult PinnedWindow::Take(size_t bytes, uint64_t* address, size_t* taken_bytes) {
  if (!Client::Process().connection().has_pinned_window) {
    StderrOnce(said_no_window,
               {"this daemon gave the session no pinned memory; stop it (`laneway stop`) and "
                "start a newer one"});
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (bytes == 0 || bytes > ipc::limits::kPinnedWindowBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  *taken_bytes = Rounded(bytes);
  {
    const base::MutexLock lock(&mutex_);
    if (!FindRoom(*taken_bytes, address)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void* const start = reinterpret_cast<void*>(*address);
  if (mprotect(start, *taken_bytes, PROT_READ | PROT_WRITE) != 0 ||
      (madvise(start, *taken_bytes, kPopulateWrite) != 0 && errno != EINVAL)) {
    Give(*address, *taken_bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

void PinnedWindow::Give(uint64_t address, size_t taken_bytes) {
  void* const start = reinterpret_cast<void*>(address);
  madvise(start, taken_bytes, MADV_REMOVE);
  mprotect(start, taken_bytes, PROT_NONE);
  const base::MutexLock lock(&mutex_);
  std::map<uint64_t, uint64_t>::iterator it = free_bytes_.emplace(address, taken_bytes).first;
  const std::map<uint64_t, uint64_t>::iterator next = std::next(it);
  if (next != free_bytes_.end() && it->first + it->second == next->first) {
    it->second += next->second;
    free_bytes_.erase(next);
  }
  if (it != free_bytes_.begin()) {
    const std::map<uint64_t, uint64_t>::iterator before = std::prev(it);
    if (before->first + before->second == it->first) {
      before->second += it->second;
      free_bytes_.erase(it);
    }
  }
}

}  // namespace shim
