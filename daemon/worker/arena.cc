#include "daemon/worker/arena.h"

#include <cassert>
#include <vector>

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
      addresses_(base_, limits::kDeviceArenaBytes) {}

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

CUresult Arena::MapExtent(int device, uint64_t bytes, bool shared, CUdeviceptr* address) {
  const std::optional<uint64_t> place = addresses_.Take(bytes, limits::kExtentBytesMin);
  if (!place.has_value()) return CUDA_ERROR_OUT_OF_MEMORY;
  Mapping mapping{.device = device, .shared = shared};
  CUresult result = environment_.extents->Create(session_id_, device, bytes, &mapping.extent);
  if (result != CUDA_SUCCESS) {
    addresses_.Give(*place, bytes);
    return result;
  }
  const CUmemAccessDesc access{.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}},
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  result = environment_.driver->cuMemMap(*place, bytes, 0, mapping.extent.handle, 0);
  if (result == CUDA_SUCCESS) {
    result = environment_.driver->cuMemSetAccess(*place, bytes, &access, 1);
    if (result != CUDA_SUCCESS) environment_.driver->cuMemUnmap(*place, bytes);
  }
  if (result != CUDA_SUCCESS) {
    environment_.extents->Free(mapping.extent);
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
    const CUresult result = MapExtent(device, rounded, false, &mapped);
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
  const CUresult result = MapExtent(device, limits::kExtentBytesMin, true, &mapped);
  if (result != CUDA_SUCCESS) return result;
  const std::optional<uint64_t> place =
      mappings_.at(mapped).inside.Take(rounded, limits::kAllocationAlignment);
  assert(place.has_value());
  blocks_[*place] = {rounded, mapped};
  *address = *place;
  return CUDA_SUCCESS;
}

CUresult Arena::Free(CUdeviceptr address) {
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
  blocks_.clear();
  while (!mappings_.empty()) UnmapExtent(mappings_.begin()->first);
}

}  // namespace worker
