#include "shim/persistent_memory.h"

#include <optional>

namespace shim {

using arena::Persistent;
using arena::Range;

PersistentMemory::PersistentMemory(uint64_t base, uint64_t bytes, Worker* worker,
                                   std::span<std::atomic<uint64_t>> empty_bytes)
    : worker_(*worker), empty_bytes_(empty_bytes), addresses_(base, bytes) {}

Persistent& PersistentMemory::Of(int device) {
  std::unique_ptr<Persistent>& mine = devices_[static_cast<size_t>(device)];
  if (mine == nullptr) mine = std::make_unique<Persistent>();
  return *mine;
}

void PersistentMemory::ShowEmpty(int device) {
  empty_bytes_[static_cast<size_t>(device)].store(Of(device).cached_bytes(),
                                                  std::memory_order_relaxed);
}

// --- blocks --------------------------------------------------------------------------------------

CUresult PersistentMemory::Take(const Context& context, const Persistent::Request& request,
                                Persistent::Block* block) {
  Persistent& persistent = Of(context.device);
  while (!persistent.Take(request, block)) {
    const uint64_t bytes = Persistent::RangeBytesFor(request.bytes);
    const std::optional<uint64_t> address = addresses_.Take(bytes);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (address.has_value()) {
      mutex_.Unlock();
      MakeRoom(context, bytes);
      result = worker_.Map(context, {*address, bytes});
      mutex_.Lock();
    }
    if (result == CUDA_SUCCESS) {
      persistent.AddRange({*address, bytes});
      continue;
    }
    if (address.has_value()) addresses_.Give({*address, bytes});
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !persistent.TakeAnywhere(request, block))
      return result;
    break;
  }
  ShowEmpty(context.device);
  return CUDA_SUCCESS;
}

void PersistentMemory::GiveLocked(int device, const Persistent::Block& block, arena::Stamp stamp,
                                  std::vector<Range>* unmap) {
  Of(device).Give(block, stamp, unmap);
  ShowEmpty(device);
  if (block.owner != Persistent::kProgram) held_.store(true, std::memory_order_relaxed);
}

void PersistentMemory::ChargeLocked(int device, Owner owner, int64_t bytes) {
  if (owner != Persistent::kProgram) Of(device).Charge(owner, bytes);
}

void PersistentMemory::ReleaseUnneededLocked(int device, std::vector<Range>* unmap) {
  Of(device).ReleaseUnneeded(unmap);
  ShowEmpty(device);
}

void PersistentMemory::MakeRoom(const Context& context, uint64_t bytes) {
  {
    const base::MutexLock lock(&mutex_);
    if (Of(context.device).unused_bytes() == 0) return;
  }
  size_t free_bytes = 0;
  if (!worker_.FreeBytes(context, &free_bytes) || free_bytes < bytes) Trim(context.device);
}

// The addresses are free once the worker has been told: what asks for them again comes after.
void PersistentMemory::Unmap(int device, const std::vector<Range>& ranges) {
  if (ranges.empty()) return;
  for (const Range& range : ranges) worker_.Unmap(device, range);
  Unmapped(ranges);
}

void PersistentMemory::Unmapped(const std::vector<Range>& ranges) {
  const base::MutexLock lock(&mutex_);
  for (const Range& range : ranges) addresses_.Give(range);
}

std::optional<uint64_t> PersistentMemory::TakeAddresses(uint64_t bytes, uint64_t alignment) {
  if (bytes > ipc::limits::kPersistentBytes || alignment > ipc::limits::kPersistentBytes)
    return std::nullopt;
  const base::MutexLock lock(&mutex_);
  const uint64_t more = alignment - ipc::limits::kExtentBytesMin;
  const std::optional<uint64_t> taken = addresses_.Take(bytes + more);
  if (!taken.has_value()) return std::nullopt;
  const uint64_t address = arena::RoundUp(*taken, alignment);
  const uint64_t before = address - *taken;
  if (before != 0) addresses_.Give({*taken, before});
  if (before != more) addresses_.Give({address + bytes, more - before});
  return address;
}

void PersistentMemory::Trim(int device) {
  std::vector<Range> unmap;
  {
    const base::MutexLock lock(&mutex_);
    Of(device).Trim(&unmap);
    ShowEmpty(device);
  }
  Unmap(device, unmap);
}

uint64_t PersistentMemory::cached_bytes(int device) {
  const base::MutexLock lock(&mutex_);
  return Of(device).cached_bytes();
}

// --- pools ---------------------------------------------------------------------------------------

Persistent::Usage PersistentMemory::UsageOf(int device, Owner owner) {
  const base::MutexLock lock(&mutex_);
  return Of(device).UsageOf(owner);
}

void PersistentMemory::ResetHigh(int device, Owner owner, bool used) {
  const base::MutexLock lock(&mutex_);
  Of(device).ResetHigh(owner, used);
}

void PersistentMemory::SetThreshold(int device, Owner owner, uint64_t bytes) {
  const base::MutexLock lock(&mutex_);
  Of(device).SetThreshold(owner, bytes);
}

uint64_t PersistentMemory::ThresholdOf(int device, Owner owner) {
  const base::MutexLock lock(&mutex_);
  return Of(device).ThresholdOf(owner);
}

void PersistentMemory::Release(int device, Owner owner, uint64_t keep) {
  std::vector<Range> unmap;
  {
    const base::MutexLock lock(&mutex_);
    Of(device).Release(owner, keep, &unmap);
    ShowEmpty(device);
  }
  Unmap(device, unmap);
}

void PersistentMemory::EndOwner(int device, Owner owner) {
  std::vector<Range> unmap;
  {
    const base::MutexLock lock(&mutex_);
    Of(device).EndOwner(owner, &unmap);
    ShowEmpty(device);
  }
  Unmap(device, unmap);
}

void PersistentMemory::ReleaseHeld() {
  for (int device = 0; device < static_cast<int>(ipc::limits::kLegacySlots); ++device) {
    std::vector<Range> unmap;
    {
      const base::MutexLock lock(&mutex_);
      held_.store(false, std::memory_order_relaxed);
      if (devices_[static_cast<size_t>(device)] == nullptr) continue;
      Of(device).OnSynchronized(&unmap);
      ShowEmpty(device);
    }
    Unmap(device, unmap);
  }
}

}  // namespace shim
