#include "daemon/worker/pinned.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "daemon/worker/reaper.h"
#include "ipc/calls/limits.h"
#include "ipc/driver_table.h"

namespace worker {
namespace {

namespace limits = ipc::limits;
constexpr uint64_t kPage = 4096;

}  // namespace

PinnedBudget& SharedPinnedBudget() {
  static PinnedBudget* const budget = new PinnedBudget(limits::kPinnedRangesShared);
  return *budget;
}

bool PinnedBudget::Take() {
  if (used_.fetch_add(1) < ranges_max_) return true;
  Give();
  return false;
}

PinnedMemory::PinnedMemory(const Environment& environment, uint32_t slot, int fd,
                           PinnedBudget* budget)
    : environment_(environment),
      base_(limits::kSlotBase + slot * limits::kSlotBytes + limits::kDeviceArenaBytes),
      fd_(fd),
      budget_(budget) {}

PinnedMemory::~PinnedMemory() {
  Detach();
  if (fd_ >= 0) close(fd_);
}

CUresult PinnedMemory::Map(uint64_t address, uint64_t bytes, unsigned flags) {
  if (address < base_ || address % kPage != 0 || bytes == 0 || bytes % kPage != 0 ||
      bytes > limits::kPinnedWindowBytes || address - base_ > limits::kPinnedWindowBytes - bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (ranges_.size() >= limits::kPinnedRangesMax || !budget_->Take())
    return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = MapHere(address, bytes);
  if (result != CUDA_SUCCESS) {
    budget_->Give();
    return result;
  }
  ranges_[address] = bytes;
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult PinnedMemory::MapHere(uint64_t address, uint64_t bytes) {
  const uint64_t offset = address - base_;
  // NOREPLACE: an overlap with an earlier range of this session is its mistake.
  void* const place = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED_NOREPLACE, fd_, static_cast<off_t>(offset));
  if (place == MAP_FAILED) {
    return errno == EEXIST && !Overlaps(address, bytes) ? CUDA_ERROR_NOT_READY
                                                        : CUDA_ERROR_INVALID_VALUE;
  }
  // The pages exist from here on: pinned memory that is not there must fail now, not fault later.
  if (posix_fallocate(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    munmap(place, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const unsigned register_flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  const CUresult result = environment_.driver->cuMemHostRegister_v2(place, bytes, register_flags);
  if (result != CUDA_SUCCESS) munmap(place, bytes);
  return result;
}

void PinnedMemory::UnmapHere(uint64_t address, uint64_t bytes) {
  void* const place = reinterpret_cast<void*>(address);
  Later(environment_, [driver = environment_.driver, budget = budget_, place, bytes] {
    driver->cuMemHostUnregister(place);
    munmap(place, bytes);
    budget->Give();
  });
}

bool PinnedMemory::Overlaps(uint64_t address, uint64_t bytes) const {
  const std::map<uint64_t, uint64_t>::const_iterator next = ranges_.lower_bound(address + bytes);
  if (next == ranges_.begin()) return false;
  return std::prev(next)->first + std::prev(next)->second > address;
}

void PinnedMemory::Detach() {
  for (const std::pair<const uint64_t, uint64_t>& range : ranges_)
    UnmapHere(range.first, range.second);
  ranges_.clear();
  bytes_.store(0, std::memory_order_relaxed);
}

CUresult PinnedMemory::Unmap(uint64_t address) {
  const std::map<uint64_t, uint64_t>::iterator it = ranges_.find(address);
  if (it == ranges_.end()) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t bytes = it->second;
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address - base_),
            static_cast<off_t>(bytes));
  UnmapHere(address, bytes);
  ranges_.erase(it);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

bool PinnedMemory::Contains(uint64_t address, uint64_t bytes) const {
  std::map<uint64_t, uint64_t>::const_iterator it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return false;
  --it;
  const uint64_t offset = address - it->first;
  return offset < it->second && bytes <= it->second - offset;
}

}  // namespace worker
