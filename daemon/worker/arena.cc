#include "daemon/worker/arena.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "ipc/driver_table.h"

namespace worker {
namespace {

namespace limits = ipc::limits;

}  // namespace

Arena::Arena(const Environment& environment, Tenant tenant, uint32_t slot, ipc::UniqueFd swap_file)
    : environment_(environment),
      tenant_(std::move(tenant)),
      base_(limits::kSlotBase + slot * limits::kSlotBytes),
      own_addresses_(base_ + limits::kWorkerOffset, limits::kWorkerBytes),
      lane_member_(tenant_.session_id, tenant_.uid, ephemeral_base(), tenant_.job),
      swap_file_(std::move(swap_file)) {}

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

bool Arena::Contains(CUdeviceptr address, uint64_t bytes) const {
  return address >= base_ && bytes <= limits::kDeviceArenaBytes &&
         address - base_ <= limits::kDeviceArenaBytes - bytes;
}

// --- ranges --------------------------------------------------------------------------------------

bool Arena::IsPlace(CUdeviceptr address, uint64_t bytes) const {
  const uint64_t offset = address - base_;  // wraps below the base
  if (bytes == 0 || (offset | bytes) % limits::kExtentBytesMin != 0 ||
      offset >= limits::kPersistentBytes || bytes > limits::kPersistentBytes - offset) {
    return false;
  }
  const Ranges::const_iterator next = ranges_.lower_bound(address + bytes);
  if (next == ranges_.begin()) return true;
  const Ranges::const_iterator before = std::prev(next);
  return before->first + BytesOf(before->second.pieces) <= address;
}

ExtentRecord Arena::RecordAt(int device, CUdeviceptr address) const {
  ExtentRecord record;
  record.owner = {OwnerKind::kSession, tenant_.session_id};
  record.address = record.range = address;
  record.device = static_cast<uint32_t>(device);
  record.uid = tenant_.uid;
  return record;
}

CUresult Arena::AddRange(int device, CUdeviceptr address, uint64_t bytes) {
  Range range{device, {}};
  const CUresult result =
      Back(environment_, RecordAt(device, address), bytes, limits::kExtentBytesMax, &range.pieces);
  if (result != CUDA_SUCCESS) return result;
  ranges_.emplace(address, std::move(range));
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

void Arena::RemoveRange(Ranges::iterator range) {
  const uint64_t bytes = BytesOf(range->second.pieces);
  if (range->second.shared != nullptr) {
    SharedRanges::Process().Leave(environment_, range->second.shared, tenant_.session_id,
                                  range->second.pieces);
  } else {
    FreePieces(environment_, range->second.pieces);
  }
  // The memory of another session: neither the job's books nor this arena's count it.
  if (range->second.is_guest) {
    ranges_.erase(range);
    return;
  }
  tenant_.job->Give(range->second.device, bytes);
  if (IsWorkersPart(range->first - base_)) own_addresses_.Give(range->first, bytes);
  ranges_.erase(range);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

CUresult Arena::Map(int device, CUdeviceptr address, uint64_t bytes) {
  assert(!swapped());
  if (!IsPlace(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!tenant_.job->Take(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = AddRange(device, address, bytes);
  if (result != CUDA_SUCCESS) tenant_.job->Give(device, bytes);
  return result;
}

// What the worker needs itself is counted, but no limit of the job refuses it.
CUresult Arena::Place(int device, uint64_t bytes, CUdeviceptr* address) {
  const uint64_t rounded = RoundUpToExtent(bytes);
  const std::optional<uint64_t> place = own_addresses_.Take(rounded, limits::kExtentBytesMin);
  if (!place.has_value()) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = AddRange(device, *place, rounded);
  if (result != CUDA_SUCCESS) {
    own_addresses_.Give(*place, rounded);
    return result;
  }
  tenant_.job->Force(device, rounded);
  *address = *place;
  return CUDA_SUCCESS;
}

uint64_t Arena::RangeBytes(CUdeviceptr address) const {
  const Ranges::const_iterator found = ranges_.find(address);
  if (found != ranges_.end()) return BytesOf(found->second.pieces);
  const std::map<CUdeviceptr, Scratch>::const_iterator away = scratch_.find(address);
  return away == scratch_.end() ? 0 : away->second.bytes;
}

CUresult Arena::Free(CUdeviceptr address, uint64_t* counted) {
  const Ranges::iterator range = ranges_.find(address);
  const std::map<CUdeviceptr, Scratch>::iterator away = scratch_.find(address);
  if (range == ranges_.end() && away == scratch_.end()) return CUDA_ERROR_INVALID_VALUE;
  // A guest's range was never counted as the guest's.
  const bool is_guest = range != ranges_.end() && range->second.is_guest;
  if (counted != nullptr) *counted = is_guest ? 0 : RangeBytes(address);
  if (range != ranges_.end()) {
    RemoveRange(range);
  } else {
    FreeScratch(away);
  }
  return CUDA_SUCCESS;
}

// --- ranges of several sessions ------------------------------------------------------------------

CUresult Arena::Share(CUdeviceptr address, ipc::ShareName* name, CUdeviceptr* base) {
  Ranges::iterator found = ranges_.upper_bound(address);
  if (found == ranges_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --found;
  Range& range = found->second;
  // Only the session that made the memory can share the range, and library workspaces are the
  // worker's.
  if (address - found->first >= BytesOf(range.pieces) || IsWorkersPart(address - base_) ||
      range.is_guest)
    return CUDA_ERROR_INVALID_VALUE;
  // One range has one name, however many of its blocks the program shares.
  if (range.shared == nullptr) {
    range.shared = SharedRanges::Process().Share({tenant_.session_id, tenant_.uid}, range.device,
                                                 range.pieces);
    if (range.shared == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  }
  *name = SharedRanges::Process().NameOf(*range.shared);
  *base = found->first;
  return CUDA_SUCCESS;
}

CUresult Arena::MapShared(int device, const ipc::ShareName& name, CUdeviceptr address) {
  assert(!swapped());
  if (!IsPlace(address, name.range_bytes)) return CUDA_ERROR_INVALID_VALUE;
  Range range{device, {}};
  range.is_guest = true;
  CUresult result = SharedRanges::Process().Join({tenant_.session_id, tenant_.uid}, name, device,
                                                 address, &range.shared);
  if (result != CUDA_SUCCESS) return result;
  // All of it, or nothing. The session is a holder already, so the extents can't go meanwhile.
  for (const Piece& piece : range.shared->PiecesAt(address)) {
    result = MapExtent(environment_, device, piece.address, piece.extent);
    if (result != CUDA_SUCCESS) break;
    range.pieces.push_back(piece);
  }
  if (result == CUDA_SUCCESS) {
    ranges_.emplace(address, std::move(range));
  } else {
    SharedRanges::Process().Leave(environment_, range.shared, tenant_.session_id, range.pieces);
  }
  return result;
}

// Guests count as well: the driver would unmap their memory, and nobody could map it again.
bool Arena::shares() const {
  return std::any_of(ranges_.begin(), ranges_.end(), [](const Ranges::value_type& range) {
    return range.second.shared != nullptr;
  });
}

// --- the lane ------------------------------------------------------------------------------------

CUresult Arena::ReserveLane(int device, uint64_t bytes) {
  if (lane_member_.lane() == 0) {
    const CUresult joined =
        lanes()->Join(&lane_member_, ipc::control::OwnLaneOf(tenant_.session_id), device);
    if (joined != CUDA_SUCCESS) return joined;
  }
  if (lane_member_.device() != device) return CUDA_ERROR_NOT_SUPPORTED;
  return lanes()->Reserve(&lane_member_, bytes);
}

// --- what there is -------------------------------------------------------------------------------

bool Arena::OthersHold(int device, uint64_t bytes) const {
  uint64_t free_bytes = 0, total_bytes = 0;
  if (environment_.extents->MemoryInfo(device, &free_bytes, &total_bytes) != CUDA_SUCCESS) {
    return false;
  }
  const uint64_t limit = tenant_.job->limit();
  const uint64_t most = limit == 0 ? total_bytes : std::min(limit, total_bytes);
  const uint64_t used = tenant_.job->used(device);
  return used <= most && bytes <= most - used;
}

CUresult Arena::MemoryInfo(int device, uint64_t* free_bytes, uint64_t* total_bytes,
                           uint64_t unseen) const {
  const CUresult result = environment_.extents->MemoryInfo(device, free_bytes, total_bytes);
  *free_bytes -= std::min(*free_bytes, unseen);
  const uint64_t limit = tenant_.job->limit();
  if (result != CUDA_SUCCESS || limit == 0) return result;
  *total_bytes = std::min(*total_bytes, limit);
  const uint64_t used = std::min(tenant_.job->used(device), *total_bytes);
  *free_bytes = std::min(*free_bytes, *total_bytes - used);
  return CUDA_SUCCESS;
}

}  // namespace worker
