#include "softgpu/driver/memory_map.h"

#include <execinfo.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "base/mutex.h"
#include "softgpu/driver/heap.h"

namespace softgpu {

namespace {

constexpr int kSiteFrames = 16;

}  // namespace

Allocation::~Allocation() {
  if (heap != nullptr) heap->Free(base, bytes);
}

uint64_t MemoryMap::NextId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1);
}

MemoryMap::Records::const_iterator MemoryMap::FirstEndingAfter(uint64_t address) const {
  Records::const_iterator it = records_.upper_bound(address);
  if (it != records_.begin() && std::prev(it)->second->end() > address) --it;
  return it;
}

bool MemoryMap::Add(std::shared_ptr<Allocation> allocation) {
  if (keeps_sites_.load(std::memory_order_relaxed)) {
    allocation->site.resize(kSiteFrames);
    allocation->site.resize(static_cast<size_t>(backtrace(allocation->site.data(), kSiteFrames)));
  }
  base::WriterLock lock(&mutex_);
  const Records::const_iterator next = FirstEndingAfter(allocation->base);
  if (next != records_.end() && next->first < allocation->end()) return false;
  const uint64_t base = allocation->base;
  records_[base] = std::move(allocation);
  return true;
}

std::shared_ptr<Allocation> MemoryMap::Find(uint64_t address) const {
  base::ReaderLock lock(&mutex_);
  const Records::const_iterator it = FirstEndingAfter(address);
  if (it == records_.end() || it->first > address) return nullptr;
  return it->second;
}

std::shared_ptr<Allocation> MemoryMap::Remove(
    uint64_t base, const std::function<bool(const Allocation&)>& matches) {
  base::WriterLock lock(&mutex_);
  const Records::iterator it = records_.find(base);
  if (it == records_.end() || !matches(*it->second)) return nullptr;
  std::shared_ptr<Allocation> allocation = std::move(it->second);
  records_.erase(it);
  return allocation;
}

std::vector<std::shared_ptr<Allocation>> MemoryMap::RemoveContext(uint64_t context_id) {
  std::vector<std::shared_ptr<Allocation>> removed;
  base::WriterLock lock(&mutex_);
  for (Records::iterator it = records_.begin(); it != records_.end();) {
    if (it->second->context_id == context_id) {
      removed.push_back(std::move(it->second));
      it = records_.erase(it);
    } else {
      ++it;
    }
  }
  return removed;
}

std::vector<std::shared_ptr<Allocation>> MemoryMap::Overlapping(uint64_t address,
                                                                uint64_t bytes) const {
  std::vector<std::shared_ptr<Allocation>> found;
  base::ReaderLock lock(&mutex_);
  for (Records::const_iterator it = FirstEndingAfter(address);
       it != records_.end() && it->first < address + bytes; ++it) {
    found.push_back(it->second);
  }
  return found;
}

bool MemoryMap::Covers(uint64_t address, uint64_t bytes) const {
  if (address + bytes < address) return false;
  const uint64_t end = address + bytes;
  base::ReaderLock lock(&mutex_);
  Records::const_iterator it = FirstEndingAfter(address);
  // Only mapped extents continue each other: a block of cuMemAlloc ends where it ends.
  do {
    if (it == records_.end() || it->first > address) return false;
    if (it->second->access == CU_MEM_ACCESS_FLAGS_PROT_NONE) return false;
    if (it->second->end() >= end) return true;
    address = it->second->end();
  } while ((it++)->second->kind == Allocation::Kind::kMapping);
  return false;
}

bool MemoryMap::Pageable(uint64_t address, uint64_t bytes) const {
  base::ReaderLock lock(&mutex_);
  const Records::const_iterator it = FirstEndingAfter(address);
  return it == records_.end() || it->first >= address + std::max<uint64_t>(bytes, 1);
}

bool MemoryMap::ContainsOutsideWindow(uint64_t address, uint64_t bytes) const {
  return Covers(address, bytes);
}

Memory::Range MemoryMap::AllocationAt(uint64_t address) const {
  const std::shared_ptr<Allocation> found = Find(address);
  return found == nullptr ? Range{} : Range{found->base, found->end()};
}

std::string MemoryMap::Near(uint64_t address) const {
  base::ReaderLock lock(&mutex_);
  const Records::const_iterator next = FirstEndingAfter(address);
  const Allocation* const above = next == records_.end() ? nullptr : next->second.get();
  const Allocation* const below =
      next == records_.begin() ? nullptr : std::prev(next)->second.get();
  if (above == nullptr && below == nullptr) return {};
  if (above != nullptr && above->base <= address) {
    return ", across the end of " + std::to_string(above->bytes) + " bytes of " +
           above->kind_name() + " memory";
  }
  const uint64_t behind = below == nullptr ? ~uint64_t{0} : address - below->end();
  const uint64_t before = above == nullptr ? ~uint64_t{0} : above->base - address;
  const Allocation& nearest = behind <= before ? *below : *above;
  char text[128];
  std::snprintf(text, sizeof text, ", %llu bytes %s %llu bytes of %s memory at 0x%llx",
                static_cast<unsigned long long>(std::min(behind, before)),
                behind <= before ? "behind" : "before",
                static_cast<unsigned long long>(nearest.bytes), nearest.kind_name(),
                static_cast<unsigned long long>(nearest.base));
  return text;
}

}  // namespace softgpu
