#include "daemon/worker/arena.h"

#include <cassert>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "ipc/calls/limits.h"
#include "ipc/driver_table.h"

namespace worker {
namespace {

namespace limits = ipc::limits;

uint64_t RoundUp(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

Arena::Arena(const Environment& environment, uint64_t session_id, uint32_t slot)
    : environment_(environment),
      session_id_(session_id),
      base_(limits::kSlotBase + slot * limits::kSlotBytes),
      backing_(environment, session_id),
      addresses_(base_, limits::kPersistentBytes),
      own_addresses_(base_ + limits::kWorkerOffset, limits::kWorkerBytes) {}

Arena::~Arena() {
  Clear();
  if (reserved_) environment_.driver->cuMemAddressFree(base_, limits::kDeviceArenaBytes);
}

bool Arena::Reserve(std::string* error) {
  CUdeviceptr got = 0;
  const CUresult result = environment_.driver->cuMemAddressReserve(
      &got, limits::kDeviceArenaBytes, limits::kExtentBytesMin, base_, 0);
  if (result == CUDA_SUCCESS && got == base_) {
    reserved_ = true;
    return true;
  }
  if (result == CUDA_SUCCESS) environment_.driver->cuMemAddressFree(got, limits::kDeviceArenaBytes);
  *error = absl::StrFormat(
      "the driver does not give the addresses %#x..%#x that this session needs (error %d, got "
      "%#x); "
      "something else in the worker occupies them: see the worker's log",
      base_, base_ + limits::kDeviceArenaBytes, result, got);
  return false;
}

// --- ranges --------------------------------------------------------------------------------------

bool Arena::IsVacant(CUdeviceptr address, uint64_t bytes) const {
  const Ranges::const_iterator next = ranges_.lower_bound(address + bytes);
  if (next == ranges_.begin()) return true;
  const Ranges::const_iterator before = std::prev(next);
  return before->first + BytesOf(before->second) <= address;
}

CUresult Arena::AddRange(int device, CUdeviceptr address, uint64_t bytes) {
  std::vector<Piece> pieces;
  const CUresult result = backing_.Back(device, address, bytes, limits::kExtentBytesMax, &pieces);
  if (result != CUDA_SUCCESS) return result;
  ranges_.emplace(address, std::move(pieces));
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

void Arena::RemoveRange(Ranges::iterator range) {
  const uint64_t bytes = BytesOf(range->second);
  backing_.Release(range->second);
  if (range->first >= base_ + limits::kWorkerOffset) own_addresses_.Give(range->first, bytes);
  ranges_.erase(range);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

CUresult Arena::Map(int device, CUdeviceptr address, uint64_t bytes) {
  const uint64_t offset = address - base_;  // wraps below the base
  if (bytes == 0 || (offset | bytes) % limits::kExtentBytesMin != 0 ||
      offset >= limits::kPersistentBytes || bytes > limits::kPersistentBytes - offset ||
      !IsVacant(address, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return AddRange(device, address, bytes);
}

CUresult Arena::Place(int device, uint64_t bytes, CUdeviceptr* address) {
  const uint64_t rounded = RoundUp(bytes, limits::kExtentBytesMin);
  const std::optional<uint64_t> place = own_addresses_.Take(rounded, limits::kExtentBytesMin);
  if (!place.has_value()) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = AddRange(device, *place, rounded);
  if (result != CUDA_SUCCESS) {
    own_addresses_.Give(*place, rounded);
    return result;
  }
  *address = *place;
  return CUDA_SUCCESS;
}

CUresult Arena::GrowLane(int device, uint64_t bytes) {
  if (bytes > limits::kEphemeralBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (lane_device_ >= 0 && lane_device_ != device) return CUDA_ERROR_NOT_SUPPORTED;
  const uint64_t have = BytesOf(lane_), want = RoundUp(bytes, limits::kExtentBytesMin);
  if (want <= have) return CUDA_SUCCESS;
  const CUresult result =
      backing_.Back(device, ephemeral_base() + have, want - have, limits::kExtentBytesMax, &lane_);
  if (result != CUDA_SUCCESS) return result;
  lane_device_ = device;
  bytes_.fetch_add(want - have, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

void Arena::ReleaseLane() {
  bytes_.fetch_sub(BytesOf(lane_), std::memory_order_relaxed);
  backing_.Release(lane_);
  lane_.clear();
  lane_device_ = -1;
}

// --- blocks --------------------------------------------------------------------------------------

CUresult Arena::MapBlocks(int device, uint64_t bytes, bool shared, CUdeviceptr* address) {
  const std::optional<uint64_t> place = addresses_.Take(bytes, limits::kExtentBytesMin);
  if (!place.has_value()) return CUDA_ERROR_OUT_OF_MEMORY;
  Mapping mapping{.device = device, .shared = shared};
  CUresult result = environment_.extents->Create(session_id_, device, bytes, &mapping.extent);
  if (result == CUDA_SUCCESS) {
    result = worker::MapExtent(environment_, device, *place, mapping.extent);
    if (result != CUDA_SUCCESS) environment_.extents->Free(mapping.extent);
  }
  if (result != CUDA_SUCCESS) {
    addresses_.Give(*place, bytes);
    return result;
  }
  if (shared) mapping.inside = AddressSpace(*place, bytes);
  mappings_.emplace(*place, std::move(mapping));
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  *address = *place;
  return CUDA_SUCCESS;
}

void Arena::UnmapExtent(CUdeviceptr address) {
  const std::map<CUdeviceptr, Mapping>::iterator it = mappings_.find(address);
  assert(it != mappings_.end());
  const Extent extent = it->second.extent;
  environment_.driver->cuMemUnmap(address, extent.bytes);
  environment_.extents->Free(extent);
  mappings_.erase(it);
  addresses_.Give(address, extent.bytes);
  bytes_.fetch_sub(extent.bytes, std::memory_order_relaxed);
}

CUresult Arena::Allocate(int device, uint64_t bytes, CUdeviceptr* address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > limits::kDeviceArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  CUdeviceptr mapped = 0;
  if (bytes > limits::kExtentBytesMin / 2) {
    const uint64_t rounded = RoundUp(bytes, limits::kExtentBytesMin);
    const CUresult result = MapBlocks(device, rounded, false, &mapped);
    if (result != CUDA_SUCCESS) return result;
    blocks_[mapped] = {rounded, mapped};
    *address = mapped;
    return CUDA_SUCCESS;
  }
  const uint64_t rounded = RoundUp(bytes, limits::kAllocationAlignment);
  for (std::pair<const CUdeviceptr, Mapping>& entry : mappings_) {
    Mapping& mapping = entry.second;
    if (!mapping.shared || mapping.device != device) continue;
    const std::optional<uint64_t> place =
        mapping.inside.Take(rounded, limits::kAllocationAlignment);
    if (!place.has_value()) continue;
    blocks_[*place] = {rounded, entry.first};
    *address = *place;
    return CUDA_SUCCESS;
  }
  const CUresult result = MapBlocks(device, limits::kExtentBytesMin, true, &mapped);
  if (result != CUDA_SUCCESS) return result;
  const std::optional<uint64_t> place =
      mappings_.at(mapped).inside.Take(rounded, limits::kAllocationAlignment);
  assert(place.has_value());
  blocks_[*place] = {rounded, mapped};
  *address = *place;
  return CUDA_SUCCESS;
}

CUresult Arena::Free(CUdeviceptr address) {
  if (const Ranges::iterator range = ranges_.find(address); range != ranges_.end()) {
    RemoveRange(range);
    return CUDA_SUCCESS;
  }
  const std::map<CUdeviceptr, Block>::iterator it = blocks_.find(address);
  if (it == blocks_.end()) return CUDA_ERROR_INVALID_VALUE;
  const Block block = it->second;
  blocks_.erase(it);
  Mapping& mapping = mappings_.at(block.mapping);
  if (mapping.shared) {
    mapping.inside.Give(address, block.bytes);
    if (mapping.inside.free_bytes() != mapping.extent.bytes) return CUDA_SUCCESS;
  }
  UnmapExtent(block.mapping);
  return CUDA_SUCCESS;
}

bool Arena::Contains(CUdeviceptr address, uint64_t bytes) const {
  return address >= base_ && bytes <= limits::kDeviceArenaBytes &&
         address - base_ <= limits::kDeviceArenaBytes - bytes;
}

void Arena::Clear() {
  ReleaseLane();
  while (!ranges_.empty()) RemoveRange(ranges_.begin());
  blocks_.clear();
  while (!mappings_.empty()) UnmapExtent(mappings_.begin()->first);
}

}  // namespace worker
