// Allocation, pinned ranges and copies.
#include "absl/time/clock.h"
#include "daemon/worker/session_impl.h"
#include "ipc/calls/limits.h"

namespace worker {
namespace {

constexpr absl::Duration kFreeWaitStep = absl::Microseconds(50);
constexpr absl::Duration kFreeWaitMax = absl::Seconds(1);  // work may wait for the program itself

// Device, host or pinned: one call serves every direction, as addresses are unified.
CUDA_MEMCPY2D Pitched(uint64_t to, size_t to_pitch, uint64_t from, size_t from_pitch) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = from;
  copy.srcPitch = from_pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.dstDevice = to;
  copy.dstPitch = to_pitch;
  return copy;
}

// The bytes that `height` rows of `width` reach; false when that overflows or a pitch is too small.
bool RowsReach(size_t pitch, size_t width, size_t height, uint64_t* bytes) {
  if (width == 0 || height == 0 || (height > 1 && pitch < width)) return false;
  unsigned long long last = 0, reach = 0;
  if (__builtin_mul_overflow(pitch, height - 1, &last)) return false;
  if (__builtin_add_overflow(last, width, &reach)) return false;
  *bytes = reach;
  return true;
}

bool InStaging(uint64_t offset, uint64_t bytes) {
  return bytes <= ipc::limits::kStagingBytes && offset <= ipc::limits::kStagingBytes - bytes;
}

}  // namespace

// Room may come back when work that uses freed memory ends (the program would have waited for that
// in its own cuMemFree), or when others give theirs up.
CUresult SessionImpl::WhenThereIsRoom(uint64_t bytes, const std::function<CUresult()>& attempt,
                                      bool undecided) {
  const auto attempt_or_ask = [&] { return undecided && HasDaemon() ? kAskAgain : attempt(); };
  frees_.Poll();
  CUresult result = attempt_or_ask();
  while (result == CUDA_ERROR_OUT_OF_MEMORY && Alive()) {
    const bool all_free = frees_.Poll();
    result = attempt_or_ask();
    if (result != CUDA_ERROR_OUT_OF_MEMORY) break;
    if (!all_free) {
      absl::SleepFor(kFreeWaitStep);
    } else if (!WaitForMemory(bytes)) {
      break;
    }
  }
  return result;
}

CUresult SessionImpl::ArenaMap(CUdeviceptr address, size_t bytes) {
  if (bytes > ipc::limits::kPersistentBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  for (;;) {
    bool undecided = false;
    CUresult result = AskForMemory(bytes, &undecided);
    if (result != CUDA_SUCCESS) return result;
    result = WhenThereIsRoom(
        bytes, [&] { return arena_.Map(device_, address, bytes); }, undecided);
    if (result != CUDA_SUCCESS) GiveMemoryBack(bytes);
    if (result != kAskAgain) return result;
  }
}

CUresult SessionImpl::ArenaUnmap(CUdeviceptr address) {
  frees_.Poll();
  if (!arena_.IsRange(address) || address >= arena_.ephemeral_base()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!addresses_.GiveUp(address, arena_.RangeBytes(address))) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = frees_.Free(streams_.All(), [this, address] { FreeRange(address); });
  if (result != CUDA_SUCCESS) addresses_.Gone(address);
  return result;
}

CUresult SessionImpl::LaneReserve(size_t bytes) {
  return bytes == 0 ? GiveLaneBack() : GrowInLane(bytes);
}

// Memory that becomes the session's own is asked for as any other; refused, it keeps the lane. What
// it has given back is not its to keep.
CUresult SessionImpl::LaneKeep(CUdeviceptr address, size_t bytes) {
  LaneTable* const lanes = arena_.lanes();
  LaneMember* const member = arena_.lane_member();
  if (!lane_.uses() && !Replays()) return CUDA_ERROR_ILLEGAL_STATE;
  const uint64_t fresh = lanes->FreshBytesFor(member, address, bytes);
  if (fresh != 0) {
    const CUresult asked = AskForMemory(fresh);
    if (asked != CUDA_SUCCESS) {
      (void)lanes->Pin(member, address, bytes);
      return asked;
    }
  }
  const CUresult kept = lanes->Keep(member, address, bytes);
  if (kept != CUDA_SUCCESS && fresh != 0) GiveMemoryBack(fresh);
  return kept;
}

CUresult SessionImpl::LaneDrop(CUdeviceptr address) {
  return arena_.lanes()->Drop(arena_.lane_member(), address) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
}

CUresult SessionImpl::StreamsJoin() {
  streams_.Join();
  return CUDA_SUCCESS;
}

void SessionImpl::WaitForFrees() {
  if (frees_.Poll()) return;
  const Waiting waiting(this, ipc::WaitState::kMemory);
  while (!frees_.Poll() && Alive()) absl::SleepFor(kFreeWaitStep);
}

// What was freed counts as free: the program's own cuMemFree would have waited for the work before.
CUresult SessionImpl::MemInfo(size_t* free, size_t* total) {
  const absl::Time deadline = absl::Now() + kFreeWaitMax;
  while (!frees_.Poll() && Alive() && absl::Now() < deadline) absl::SleepFor(kFreeWaitStep);
  uint64_t free_bytes = 0, total_bytes = 0;
  const CUresult result = arena_.MemoryInfo(device_, &free_bytes, &total_bytes);
  *free = free_bytes;
  *total = total_bytes;
  return result;
}

CUresult SessionImpl::PinnedAlloc(CUdeviceptr address, size_t bytes, unsigned flags) {
  return pinned_.Map(address, bytes, flags);
}

CUresult SessionImpl::PinnedFree(CUdeviceptr address) {
  addresses_.LostPinned();
  return pinned_.Unmap(address);
}

CUresult SessionImpl::CopyInline(CUdeviceptr to, const void* bytes, size_t count, CUstream stream) {
  // The driver takes pageable bytes into its own staging before it returns, up to 64 KiB.
  return driver_.cuMemcpyHtoDAsync_v2(to, bytes, count, stream);
}

CUresult SessionImpl::CopyStagedIn(CUdeviceptr to, uint64_t staging_offset, size_t count,
                                   CUstream stream, ipc::Mark mark) {
  if (!InStaging(staging_offset, count)) return CUDA_ERROR_INVALID_VALUE;
  return MarkCopy(driver_.cuMemcpyHtoDAsync_v2(to, file_.staging() + staging_offset, count, stream),
                  mark);
}

// A client waits for the copy. What the driver has done when it returns needs nobody to tell of it.
// The driver's own stream orders it with nothing: all others are non-blocking (streams.h).
bool SessionImpl::CanCopyAtOnce(size_t count, CUstream stream) {
  return count <= ipc::limits::kShortCopyBytes && driver_.cuStreamQuery(stream) == CUDA_SUCCESS;
}

CUresult SessionImpl::CopyOut(uint64_t staging_offset, CUdeviceptr from, size_t count,
                              CUstream stream, bool at_once) {
  std::byte* const to = file_.staging() + staging_offset;
  return at_once ? driver_.cuMemcpyDtoH_v2(to, from, count)
                 : driver_.cuMemcpyDtoHAsync_v2(to, from, count, stream);
}

CUresult SessionImpl::MarkCopy(CUresult copied, const ipc::Mark& mark, bool at_once) {
  CUresult marked = CUDA_SUCCESS;
  if (at_once) {
    ReachMark(CallStream(), mark);
  } else {
    marked = PlaceMark(CallStream(), mark);
  }
  return copied != CUDA_SUCCESS ? copied : marked;
}

CUresult SessionImpl::CopyStagedOut(uint64_t staging_offset, CUdeviceptr from, size_t count,
                                    CUstream stream, ipc::Mark mark) {
  if (!InStaging(staging_offset, count)) return CUDA_ERROR_INVALID_VALUE;
  const bool at_once = CanCopyAtOnce(count, stream);
  return MarkCopy(CopyOut(staging_offset, from, count, stream, at_once), mark, at_once);
}

CUresult SessionImpl::FetchAhead(uint64_t staging_offset, CUdeviceptr from, size_t count,
                                 CUstream stream, ipc::Mark mark, uint64_t ticket) {
  if (!InStaging(staging_offset, count)) return CUDA_ERROR_INVALID_VALUE;
  if (IsItsTurn() && addresses_.Backs(from, count) &&
      CopyOut(staging_offset, from, count, stream, CanCopyAtOnce(count, stream)) == CUDA_SUCCESS) {
    file_.page()->fetched.store(ticket, std::memory_order_release);
  }
  return PlaceMark(CallStream(), mark);
}

CUresult SessionImpl::CopyDevice(CUdeviceptr to, CUdeviceptr from, size_t count, CUstream stream,
                                 ipc::Mark mark) {
  // The driver waits for such a copy only when one side is the host's: between two places of the
  // device cuMemcpy returns before the copy is done.
  const bool with_host = pinned_.Contains(to, count) || pinned_.Contains(from, count);
  const bool at_once = mark.sequence != 0 && with_host && CanCopyAtOnce(count, stream);
  return MarkCopy(
      at_once ? driver_.cuMemcpy(to, from, count) : driver_.cuMemcpyAsync(to, from, count, stream),
      mark, at_once);
}

CUresult SessionImpl::CopyPitched(CUdeviceptr to, size_t to_pitch, CUdeviceptr from,
                                  size_t from_pitch, size_t width, size_t height, CUstream stream,
                                  ipc::Mark mark) {
  CUDA_MEMCPY2D copy = Pitched(to, to_pitch, from, from_pitch);
  copy.WidthInBytes = width;
  copy.Height = height;
  return MarkCopy(driver_.cuMemcpy2DAsync_v2(&copy, stream), mark);
}

CUresult SessionImpl::CopyPitchedStagedIn(CUdeviceptr to, size_t to_pitch, uint64_t staging_offset,
                                          size_t width, size_t height, CUstream stream,
                                          ipc::Mark mark) {
  uint64_t reach = 0, packed = 0;
  if (!RowsReach(to_pitch, width, height, &reach) || !Accepts(to, reach) ||
      !RowsReach(width, width, height, &packed) || !InStaging(staging_offset, packed)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t from = reinterpret_cast<uint64_t>(file_.staging() + staging_offset);
  return CopyPitched(to, to_pitch, from, width, width, height, stream, mark);
}

CUresult SessionImpl::CopyPitchedStagedOut(uint64_t staging_offset, CUdeviceptr from,
                                           size_t from_pitch, size_t width, size_t height,
                                           CUstream stream, ipc::Mark mark) {
  uint64_t reach = 0, packed = 0;
  if (!RowsReach(from_pitch, width, height, &reach) || !Accepts(from, reach) ||
      !RowsReach(width, width, height, &packed) || !InStaging(staging_offset, packed)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t to = reinterpret_cast<uint64_t>(file_.staging() + staging_offset);
  return CopyPitched(to, width, from, from_pitch, width, height, stream, mark);
}

CUresult SessionImpl::GetDeviceInfo(CUdevice device, ipc::DeviceInfo* info) {
  if (device < 0 || static_cast<size_t>(device) >= seen_devices_.count()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  device = seen_devices_.At(static_cast<size_t>(device));
  driver_.cuDeviceGetName(info->name, sizeof info->name, device);
  driver_.cuDeviceGetPCIBusId(info->pci_bus_id, sizeof info->pci_bus_id, device);
  CUuuid uuid{};
  driver_.cuDeviceGetUuid_v2(&uuid, device);
  std::memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    const CUdevice_attribute attribute = static_cast<CUdevice_attribute>(i);
    int value = 0;
    if (driver_.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS) {
      info->attributes[i] = value;
    }
  }
  uint64_t free_bytes = 0;
  return arena_.MemoryInfo(device, &free_bytes, &info->memory_bytes);
}

}  // namespace worker
