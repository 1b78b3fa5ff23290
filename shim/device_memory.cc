#include "shim/device_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ipc/client_words.h"
#include "ipc/environment.h"
#include "shim/call_site.h"
#include "shim/client.h"
#include "shim/iterations/iterations.h"
#include "shim/send.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace shim {
namespace {

using arena::Ephemeral;
using arena::Persistent;
using arena::Range;
using arena::Sites;

bool IsWanted(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr || std::strcmp(value, "off") != 0;
}

}  // namespace

DeviceMemory& DeviceMemory::Process() {
  static DeviceMemory* const memory = new DeviceMemory;
  return *memory;
}

DeviceMemory::DeviceMemory()
    : use_sites_(IsWanted(ipc::kSitesVariable)),
      use_lane_(IsWanted(ipc::kLaneVariable)),
      addresses_(Client::Process().arena_base(), ipc::limits::kPersistentBytes),
      ephemeral_(Client::Process().arena_base() + ipc::limits::kEphemeralOffset,
                 ipc::limits::kEphemeralBytes) {}

Persistent& DeviceMemory::Of(int device) {
  std::unique_ptr<Persistent>& mine = devices_[static_cast<size_t>(device)];
  if (mine == nullptr) mine = std::make_unique<Persistent>();
  return *mine;
}

void DeviceMemory::ShowEmpty(int device) {
  ipc::ClientWordsOf(Client::Process().file().page())
      ->empty_bytes[static_cast<size_t>(device)]
      .store(Of(device).cached_bytes(), std::memory_order_relaxed);
}

// --- allocation ----------------------------------------------------------------------------------

// The lock is let go while frames are walked: the first walk takes the dynamic linker's.
DeviceMemory::Placement DeviceMemory::Predict(Lock* lock, int device, size_t bytes) {
  if (!tracking_ || (lane_device_ >= 0 && device != lane_device_)) return {};
  Placement placement{sites_.Ask(bytes), Sites::kNoSite};
  if (placement.predicted != Sites::Class::kUndecided) return placement;
  if (use_sites_) {
    lock->unlock();
    placement.site = CallSite();
    lock->lock();
    ++counts_.hashed;
  }
  placement.predicted = sites_.AskSite(bytes, placement.site);
  return placement;
}

CUresult DeviceMemory::Allocate(const Context& context, size_t bytes, const Order& order,
                                Allocation* made) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > ipc::limits::kPersistentBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  made->device = context.device;
  made->bytes = bytes;
  made->pool = order.pool;
  {
    Lock lock(mutex_);
    ++counts_.allocations;
    if (locked_ && !iterations::Iterations::Process().recognised()) OnLost();
    const Placement placement = Predict(&lock, context.device, bytes);
    const bool short_lived = placement.predicted == Sites::Class::kEphemeral;
    if (!short_lived || !locked_ || lane_refused_ ||
        !TakeEphemeral(&lock, context, bytes, order, made)) {
      const CUresult result = TakePersistent(&lock, context, bytes, order, short_lived, made);
      if (result != CUDA_SUCCESS) return result;
    }
    Note(placement, made);
  }
  return JoinIfNeeded(context, made->block.stamp, order);
}

bool DeviceMemory::TakeEphemeral(Lock* lock, const Context& context, size_t bytes,
                                 const Order& order, Allocation* made) {
  arena::Blocks::Taken taken;
  if (!ephemeral_.Take(bytes, &taken)) return false;
  while (ephemeral_.GrowthFor(taken) != 0) {
    const uint64_t lane = std::min(
        std::max(ephemeral_.GrowthFor(taken), arena::RoundUp(learned_peak_, Ephemeral::kStepBytes)),
        static_cast<uint64_t>(ipc::limits::kEphemeralBytes));
    const uint64_t more = lane - ephemeral_.lane_bytes();
    lane_device_ = context.device;
    lock->unlock();
    MakeRoom(context, more);
    const CUresult result = Call<ipc::Op::LaneReserve>(context.wire, static_cast<size_t>(lane));
    lock->lock();
    if (result != CUDA_SUCCESS) {
      ephemeral_.Give(taken.index, taken.stamp);
      lane_refused_ = true;
      return false;
    }
    ephemeral_.Grow(lane);
  }
  ++counts_.ephemeral;
  CountInLane(1);
  made->base = taken.address;
  made->ephemeral = true;
  made->block = {taken.address, taken.bytes, order.owner, 0, taken.index, taken.stamp};
  if (order.owner != Persistent::kProgram) {
    Of(context.device).Charge(order.owner, static_cast<int64_t>(taken.bytes));
  }
  return true;
}

CUresult DeviceMemory::TakePersistent(Lock* lock, const Context& context, size_t bytes,
                                      const Order& order, bool short_lived, Allocation* made) {
  Persistent& persistent = Of(context.device);
  const Persistent::Request request{bytes, order.owner, order.slot, short_lived};
  while (!persistent.Take(request, &made->block)) {
    const uint64_t range = Persistent::RangeBytesFor(bytes);
    const std::optional<uint64_t> address = addresses_.Take(range);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (address.has_value()) {
      lock->unlock();
      result = MapRange(context, *address, range);
      lock->lock();
    }
    if (result == CUDA_SUCCESS) {
      persistent.AddRange({*address, range});
      continue;
    }
    if (address.has_value()) addresses_.Give({*address, range});
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !persistent.TakeAnywhere(request, &made->block))
      return result;
    break;
  }
  ShowEmpty(context.device);
  made->base = made->block.address;
  made->ephemeral = false;
  return CUDA_SUCCESS;
}

CUresult DeviceMemory::MapRange(const Context& context, uint64_t address, uint64_t bytes) {
  MakeRoom(context, bytes);
  const CUresult result = Call<ipc::Op::ArenaMap>(context.wire, static_cast<CUdeviceptr>(address),
                                                  static_cast<size_t>(bytes));
  if (result != CUDA_ERROR_INVALID_VALUE) return result;
  // What was there before is unmapped when its last work is complete.
  if (const CUresult waited = SynchronizeDevice(context.device); waited != CUDA_SUCCESS)
    return waited;
  return Call<ipc::Op::ArenaMap>(context.wire, static_cast<CUdeviceptr>(address),
                                 static_cast<size_t>(bytes));
}

// A session never waits for memory that it has itself and does not use.
void DeviceMemory::MakeRoom(const Context& context, uint64_t bytes) {
  {
    const Lock lock(mutex_);
    if (Of(context.device).unused_bytes() == 0) return;
  }
  size_t free_bytes = 0, total_bytes = 0;
  const CUresult result = Call<ipc::Op::MemInfo>(context.wire, &free_bytes, &total_bytes);
  if (result != CUDA_SUCCESS || free_bytes < bytes) Trim(context.device);
}

void DeviceMemory::Note(const Placement& placement, Allocation* made) {
  live_bytes_.store(live_bytes() + made->block.bytes, std::memory_order_relaxed);
  if (!tracking_) return;
  made->birth = sites_.OnAllocate(made->bytes, placement.site, made->ephemeral);
  places_.push_back(
      {{made->base, made->block.bytes}, Client::Process().pipeline().operations(), false});
  born_bytes_ += made->block.bytes;
  born_peak_ = std::max(born_peak_, born_bytes_);
}

CUresult DeviceMemory::JoinIfNeeded(const Context& context, const arena::Stamp& stamp,
                                    const Order& order) {
  if (!Client::Process().pipeline().fences().OnReuse(stamp, order.slot)) return CUDA_SUCCESS;
  return Streams::SendJoin(context.wire);
}

// --- free ----------------------------------------------------------------------------------------

void DeviceMemory::Free(const Allocation& allocation, int32_t slot) {
  const arena::Stamp stamp = Client::Process().pipeline().fences().OnFree(slot);
  const Persistent::Block& block = allocation.block;
  std::vector<Range> unmap;
  bool kept = false;
  {
    const Lock lock(mutex_);
    const bool young = sites_.IsYoung(allocation.birth);
    if (young) {
      places_[allocation.birth - sites_.first()].dead = true;
      sites_.OnFree(allocation.birth);
      born_bytes_ -= block.bytes;
    }
    Persistent& persistent = Of(allocation.device);
    if (allocation.ephemeral) {
      ephemeral_.Give(block.index, stamp);
      if (!young) {
        strays_.erase(allocation.base);
        kept = kept_.erase(allocation.base) != 0;
      }
      if (!kept) CountInLane(-1);
      if (block.owner != Persistent::kProgram)
        persistent.Charge(block.owner, -static_cast<int64_t>(block.bytes));
    } else {
      persistent.Give(block, stamp, &unmap);
      ShowEmpty(allocation.device);
      if (block.owner != Persistent::kProgram) held_.store(true, std::memory_order_relaxed);
    }
    live_bytes_.store(live_bytes() - block.bytes, std::memory_order_relaxed);
  }
  if (kept) {
    Post<ipc::Op::LaneDrop>(State::WireOfDevice(allocation.device),
                            static_cast<CUdeviceptr>(allocation.base));
  }
  Unmap(allocation.device, unmap);
}

// The addresses are free once the worker has been told: what asks for them again comes after.
void DeviceMemory::Unmap(int device, const std::vector<Range>& ranges) {
  if (ranges.empty()) return;
  for (const Range& range : ranges) {
    Post<ipc::Op::ArenaUnmap>(State::WireOfDevice(device), static_cast<CUdeviceptr>(range.base));
  }
  Unmapped(ranges);
}

void DeviceMemory::Unmapped(const std::vector<Range>& ranges) {
  const Lock lock(mutex_);
  for (const Range& range : ranges) addresses_.Give(range);
}

// --- questions and pools -------------------------------------------------------------------------

uint64_t DeviceMemory::cached_bytes(int device) {
  const Lock lock(mutex_);
  return Of(device).cached_bytes();
}

std::vector<Range> DeviceMemory::MappedRanges(int device) {
  const Lock lock(mutex_);
  return Of(device).Ranges();
}

DeviceMemory::Counts DeviceMemory::counts() {
  const Lock lock(mutex_);
  Counts counts = counts_;
  counts.wrong = sites_.wrong();
  return counts;
}

Persistent::Usage DeviceMemory::UsageOf(int device, uint32_t owner) {
  const Lock lock(mutex_);
  return Of(device).UsageOf(owner);
}

void DeviceMemory::ResetHigh(int device, uint32_t owner, bool used) {
  const Lock lock(mutex_);
  Of(device).ResetHigh(owner, used);
}

void DeviceMemory::SetThreshold(int device, uint32_t owner, uint64_t bytes) {
  const Lock lock(mutex_);
  Of(device).SetThreshold(owner, bytes);
}

uint64_t DeviceMemory::ThresholdOf(int device, uint32_t owner) {
  const Lock lock(mutex_);
  return Of(device).ThresholdOf(owner);
}

void DeviceMemory::Release(int device, uint32_t owner, uint64_t keep) {
  std::vector<Range> unmap;
  {
    const Lock lock(mutex_);
    Of(device).Release(owner, keep, &unmap);
    ShowEmpty(device);
  }
  Unmap(device, unmap);
}

void DeviceMemory::EndOwner(int device, uint32_t owner) {
  std::vector<Range> unmap;
  {
    const Lock lock(mutex_);
    Of(device).EndOwner(owner, &unmap);
    ShowEmpty(device);
  }
  Unmap(device, unmap);
}

void DeviceMemory::ReleaseHeld() {
  for (int device = 0; device < static_cast<int>(devices_.size()); ++device) {
    std::vector<Range> unmap;
    {
      const Lock lock(mutex_);
      held_.store(false, std::memory_order_relaxed);
      if (devices_[static_cast<size_t>(device)] == nullptr) continue;
      Of(device).OnSynchronized(&unmap);
      ShowEmpty(device);
    }
    Unmap(device, unmap);
  }
}

void DeviceMemory::Trim(int device) {
  std::vector<Range> unmap;
  {
    const Lock lock(mutex_);
    Of(device).Trim(&unmap);
    ShowEmpty(device);
  }
  Unmap(device, unmap);
}

bool DeviceMemory::OnContextReset(int device) {
  Trim(device);
  const Lock lock(mutex_);
  if (device != lane_device_) return false;
  ephemeral_.OnLaneLost();
  CountInLane(-static_cast<int32_t>(lane_blocks_));
  return true;
}

// The worker may hand the lane on while there are none, and nothing is on its way to the device.
void DeviceMemory::CountInLane(int32_t more) {
  lane_blocks_ += static_cast<uint32_t>(more);
  Client::Process().file().page()->lane_blocks.store(lane_blocks_, std::memory_order_release);
}

// --- iterations ----------------------------------------------------------------------------------

// What was born since the last operation is for the next iteration.
Sites::Birth DeviceMemory::FirstOfNext() const {
  const uint64_t operations = Client::Process().pipeline().operations();
  size_t older = places_.size();
  while (older > 0 && places_[older - 1].operations == operations) --older;
  return sites_.first() + older;
}

DeviceMemory::Wishes DeviceMemory::OnBoundary() {
  Wishes at;
  const Lock lock(mutex_);
  const Sites::Birth next = FirstOfNext();
  for (const std::pair<const uint64_t, uint64_t>& stray : strays_)
    at.outlived.push_back({stray.first, stray.second});
  strays_.clear();
  for (const Sites::Birth birth : sites_.Outlived(next))
    at.outlived.push_back(places_[birth - sites_.first()].range);
  for (const Range& range : at.outlived) CountInLane(kept_.insert(range.base).second ? -1 : 0);
  places_.erase(places_.begin(), places_.begin() + static_cast<long>(next - sites_.first()));
  sites_.OnBoundary(next);
  // The iteration needed what was born in it at once, without what outlived it.
  uint64_t early = 0;
  for (const Place& place : places_) early += place.dead ? 0 : place.range.bytes;
  learned_peak_ = std::max(learned_peak_, born_peak_ - (born_bytes_ - early));
  born_bytes_ = born_peak_ = early;
  tracking_ = true;
  locked_ = use_lane_ && iterations::Iterations::Process().recognised();
  lane_refused_ = false;
  at.ephemeral_bytes = ephemeral_.OnBoundary();
  at.persistent_bytes = live_bytes() - ephemeral_.live_bytes();
  at.lane_device = std::max(0, lane_device_);
  Of(at.lane_device).ReleaseUnneeded(&at.unneeded);
  ShowEmpty(at.lane_device);
  return at;
}

// Iterations are no longer recognised. What is born from here on dies at no boundary that we see;
// what lies in the lane is told to the worker at the next one.
void DeviceMemory::OnLost() {
  for (const Sites::Birth birth : sites_.Outlived(sites_.next())) {
    const Range& range = places_[birth - sites_.first()].range;
    strays_[range.base] = range.bytes;
  }
  sites_.OnLost();
  places_.clear();
  born_bytes_ = born_peak_ = 0;
  tracking_ = locked_ = false;
}

}  // namespace shim
