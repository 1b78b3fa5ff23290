#include "softgpu/exec/device_heap.h"

#include <iterator>

namespace softgpu {

DeviceHeap::DeviceHeap(uint64_t base, uint64_t bytes)
    : base_(base), bytes_(bytes / kAlignment * kAlignment) {
  const base::MutexLock lock(&mutex_);
  if (bytes_ != 0) AddFree(base_, bytes_);
}

uint64_t DeviceHeap::RoundUp(uint64_t bytes) {
  return bytes == 0 ? kAlignment : (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void DeviceHeap::AddFree(uint64_t address, uint64_t bytes) {
  free_.emplace(address, bytes);
  free_by_size_.emplace(bytes, address);
}

void DeviceHeap::RemoveFree(std::map<uint64_t, uint64_t>::iterator part) {
  free_by_size_.erase({part->second, part->first});
  free_.erase(part);
}

uint64_t DeviceHeap::Allocate(uint64_t bytes) {
  if (bytes > bytes_) return 0;
  const uint64_t wanted = RoundUp(bytes);
  const base::MutexLock lock(&mutex_);
  const auto smallest = free_by_size_.lower_bound({wanted, 0});
  if (smallest == free_by_size_.end()) return 0;
  const auto [free_bytes, address] = *smallest;
  RemoveFree(free_.find(address));
  if (free_bytes > wanted) AddFree(address + wanted, free_bytes - wanted);
  blocks_.emplace(address, bytes);
  return address;
}

bool DeviceHeap::Free(uint64_t address) {
  const base::MutexLock lock(&mutex_);
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return false;
  uint64_t begin = address, end = address + RoundUp(block->second);
  blocks_.erase(block);
  const auto after = free_.lower_bound(begin);
  const auto before = after == free_.begin() ? free_.end() : std::prev(after);
  if (after != free_.end() && after->first == end) {
    end += after->second;
    RemoveFree(after);
  }
  if (before != free_.end() && before->first + before->second == begin) {
    begin = before->first;
    RemoveFree(before);
  }
  AddFree(begin, end - begin);
  return true;
}

Memory::Range DeviceHeap::BlockAt(uint64_t address) const {
  const base::MutexLock lock(&mutex_);
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return {};
  --block;
  const uint64_t end = block->first + block->second;
  return address < end ? Memory::Range{block->first, end} : Memory::Range{};
}

}  // namespace softgpu
