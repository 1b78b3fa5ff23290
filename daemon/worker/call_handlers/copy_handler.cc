#include "daemon/worker/call_handlers/copy_handler.h"

#include "ipc/calls/limits.h"

namespace worker {
namespace {

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

CopyHandler::CopyHandler(Holdings* held, CallContext* call, const DeviceTurn* turn,
                         const Client& client)
    : driver_(*held->environment.driver),
      held_(*held),
      call_(*call),
      turn_(*turn),
      client_(client) {}

CUresult CopyHandler::CopyInline(CUdeviceptr to, const void* bytes, size_t count, CUstream stream) {
  // The driver takes pageable bytes into its own staging before it returns, up to 64 KiB.
  return driver_.cuMemcpyHtoDAsync_v2(to, bytes, count, stream);
}

CUresult CopyHandler::CopyStagedIn(CUdeviceptr to, uint64_t staging_offset, size_t count,
                                   CUstream stream, ipc::Mark mark) {
  if (!InStaging(staging_offset, count)) return CUDA_ERROR_INVALID_VALUE;
  return MarkCopy(
      driver_.cuMemcpyHtoDAsync_v2(to, client_.file->staging() + staging_offset, count, stream),
      mark);
}

// A client waits for the copy. A copy that is complete when the driver returns needs no notice. The
// driver's own stream orders it with nothing: all others are non-blocking (streams.h).
bool CopyHandler::CanCopyAtOnce(size_t count, CUstream stream) {
  return count <= ipc::limits::kShortCopyBytes && driver_.cuStreamQuery(stream) == CUDA_SUCCESS;
}

CUresult CopyHandler::CopyOut(uint64_t staging_offset, CUdeviceptr from, size_t count,
                              CUstream stream, bool at_once) {
  std::byte* const to = client_.file->staging() + staging_offset;
  return at_once ? driver_.cuMemcpyDtoH_v2(to, from, count)
                 : driver_.cuMemcpyDtoHAsync_v2(to, from, count, stream);
}

CUresult CopyHandler::MarkCopy(CUresult copied, const ipc::Mark& mark, bool at_once) {
  CUresult marked = CUDA_SUCCESS;
  if (at_once) {
    client_.bell->ReachMark(call_.stream, mark);
  } else {
    marked = client_.bell->PlaceMark(call_.stream, mark);
  }
  return copied != CUDA_SUCCESS ? copied : marked;
}

CUresult CopyHandler::CopyStagedOut(uint64_t staging_offset, CUdeviceptr from, size_t count,
                                    CUstream stream, ipc::Mark mark) {
  if (!InStaging(staging_offset, count)) return CUDA_ERROR_INVALID_VALUE;
  const bool at_once = CanCopyAtOnce(count, stream);
  return MarkCopy(CopyOut(staging_offset, from, count, stream, at_once), mark, at_once);
}

CUresult CopyHandler::FetchAhead(uint64_t staging_offset, CUdeviceptr from, size_t count,
                                 CUstream stream, ipc::Mark mark, uint64_t ticket) {
  if (!InStaging(staging_offset, count)) return CUDA_ERROR_INVALID_VALUE;
  if (turn_.IsItsTurn() && held_.addresses.Backs(from, count) &&
      CopyOut(staging_offset, from, count, stream, CanCopyAtOnce(count, stream)) == CUDA_SUCCESS) {
    client_.file->page()->fetched.store(ticket, std::memory_order_release);
  }
  return client_.bell->PlaceMark(call_.stream, mark);
}

CUresult CopyHandler::CopyDevice(CUdeviceptr to, CUdeviceptr from, size_t count, CUstream stream,
                                 ipc::Mark mark) {
  // The driver waits for such a copy only when one side is the host's: between two places of the
  // device cuMemcpy returns before the copy is done.
  const bool with_host = held_.pinned.Contains(to, count) || held_.pinned.Contains(from, count);
  const bool at_once = mark.sequence != 0 && with_host && CanCopyAtOnce(count, stream);
  return MarkCopy(
      at_once ? driver_.cuMemcpy(to, from, count) : driver_.cuMemcpyAsync(to, from, count, stream),
      mark, at_once);
}

CUresult CopyHandler::CopyPitched(CUdeviceptr to, size_t to_pitch, CUdeviceptr from,
                                  size_t from_pitch, size_t width, size_t height, CUstream stream,
                                  ipc::Mark mark) {
  CUDA_MEMCPY2D copy = Pitched(to, to_pitch, from, from_pitch);
  copy.WidthInBytes = width;
  copy.Height = height;
  return MarkCopy(driver_.cuMemcpy2DAsync_v2(&copy, stream), mark);
}

CUresult CopyHandler::CopyPitchedStagedIn(CUdeviceptr to, size_t to_pitch, uint64_t staging_offset,
                                          size_t width, size_t height, CUstream stream,
                                          ipc::Mark mark) {
  uint64_t reach = 0, packed = 0;
  if (!RowsReach(to_pitch, width, height, &reach) || !client_.door->Accepts(to, reach) ||
      !RowsReach(width, width, height, &packed) || !InStaging(staging_offset, packed)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t from = reinterpret_cast<uint64_t>(client_.file->staging() + staging_offset);
  return CopyPitched(to, to_pitch, from, width, width, height, stream, mark);
}

CUresult CopyHandler::CopyPitchedStagedOut(uint64_t staging_offset, CUdeviceptr from,
                                           size_t from_pitch, size_t width, size_t height,
                                           CUstream stream, ipc::Mark mark) {
  uint64_t reach = 0, packed = 0;
  if (!RowsReach(from_pitch, width, height, &reach) || !client_.door->Accepts(from, reach) ||
      !RowsReach(width, width, height, &packed) || !InStaging(staging_offset, packed)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t to = reinterpret_cast<uint64_t>(client_.file->staging() + staging_offset);
  return CopyPitched(to, width, from, from_pitch, width, height, stream, mark);
}

}  // namespace worker
