// Pitched copies: packed rows through staging chunks, or directly between memory that both sides
// see.
#include <algorithm>
#include <cstring>

#include "shim/copy.h"
#include "shim/registered_memory.h"
#include "shim/send.h"
#include "shim/staging.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace shim {
namespace {

using Place = Memory::Place;

size_t SpanOf(size_t pitch, size_t width, size_t height) { return pitch * (height - 1) + width; }

// One staging chunk's worth of rows, or one row that is longer than a chunk.
CUresult RowsIn(const PitchedCopy& copy, const Stream& stream) {
  unsigned chunk = 0;
  if (const CUresult result = Staging::Process().Take(&chunk); result != CUDA_SUCCESS)
    return result;
  for (size_t row = 0; row < copy.height; ++row) {
    std::memcpy(Staging::BytesOf(chunk) + row * copy.width,
                reinterpret_cast<const void*>(copy.from + row * copy.from_pitch), copy.width);
  }
  CUdeviceptr to = copy.to;
  size_t to_pitch = copy.to_pitch, width = copy.width, height = copy.height;
  uint64_t offset = Staging::OffsetOf(chunk);
  CUstream program = ProgramOf(stream);
  ipc::Mark mark;
  const CUresult result = PostWith<ipc::Op::CopyPitchedStagedIn>(
      stream.wire, [&] { mark = Streams::Process().NextMark(stream, false); }, to, to_pitch, offset,
      width, height, program, mark);
  Staging::Process().Give(chunk, stream, result == CUDA_SUCCESS ? mark.sequence : 0);
  return result;
}

CUresult RowsOut(const PitchedCopy& copy, const Stream& stream) {
  unsigned chunk = 0;
  if (const CUresult result = Staging::Process().Take(&chunk); result != CUDA_SUCCESS)
    return result;
  CUdeviceptr from = copy.from;
  size_t from_pitch = copy.from_pitch, width = copy.width, height = copy.height;
  uint64_t offset = Staging::OffsetOf(chunk);
  CUstream program = ProgramOf(stream);
  ipc::Mark mark;
  CUresult result = PostWith<ipc::Op::CopyPitchedStagedOut>(
      stream.wire, [&] { mark = Streams::Process().NextMark(stream, false); }, offset, from,
      from_pitch, width, height, program, mark);
  if (result == CUDA_SUCCESS) result = WaitForSequence(stream, mark.sequence);
  for (size_t row = 0; row < copy.height && result == CUDA_SUCCESS; ++row) {
    std::memcpy(reinterpret_cast<void*>(copy.to + row * copy.to_pitch),
                Staging::BytesOf(chunk) + row * copy.width, copy.width);
  }
  Staging::Process().Give(chunk, stream, result == CUDA_SUCCESS ? 0 : mark.sequence);
  return result;
}

// Through staging, as many whole rows at a time as fit a chunk.
CUresult Staged(const PitchedCopy& copy, const Stream& stream, bool in) {
  const size_t rows = Staging::kChunkBytes / copy.width;
  CUresult result = CUDA_SUCCESS;
  for (size_t row = 0; row < copy.height && result == CUDA_SUCCESS;
       row += std::max<size_t>(rows, 1)) {
    PitchedCopy part = copy;
    part.to += row * copy.to_pitch;
    part.from += row * copy.from_pitch;
    part.height = std::min(std::max<size_t>(rows, 1), copy.height - row);
    if (rows == 0) {
      result = CopyLinear({part.to, part.from, part.width, part.synchronous}, stream);
    } else {
      result = in ? RowsIn(part, stream) : RowsOut(part, stream);
    }
  }
  return result;
}

CUresult Direct(const PitchedCopy& copy, const Stream& stream, bool wait) {
  CUdeviceptr to = copy.to;
  CUdeviceptr from = copy.from;
  size_t to_pitch = copy.to_pitch, from_pitch = copy.from_pitch, width = copy.width,
         height = copy.height;
  CUstream program = ProgramOf(stream);
  ipc::Mark mark;
  const CUresult result = PostWith<ipc::Op::CopyPitched>(
      stream.wire,
      [&] {
        if (wait) mark = Streams::Process().NextMark(stream, false);
      },
      to, to_pitch, from, from_pitch, width, height, program, mark);
  return result == CUDA_SUCCESS && wait ? WaitForSequence(stream, mark.sequence) : result;
}

CUresult BetweenHosts(const PitchedCopy& copy, const Stream& stream) {
  if (const CUresult result = SynchronizeStream(stream); result != CUDA_SUCCESS) return result;
  for (size_t row = 0; row < copy.height; ++row) {
    std::memmove(reinterpret_cast<void*>(copy.to + row * copy.to_pitch),
                 reinterpret_cast<const void*>(copy.from + row * copy.from_pitch), copy.width);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CopyRows(const PitchedCopy& asked, const Stream& stream) {
  PitchedCopy copy = asked;
  if (copy.width == 0 || copy.height == 0) return CUDA_SUCCESS;
  if (copy.height > 1 && (copy.to_pitch < copy.width || copy.from_pitch < copy.width)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (copy.height == 1 || (copy.to_pitch == copy.width && copy.from_pitch == copy.width)) {
    return CopyLinear({copy.to, copy.from, copy.width * copy.height, copy.synchronous}, stream);
  }
  copy.to =
      RegisteredMemory::Process().Seen(copy.to, SpanOf(copy.to_pitch, copy.width, copy.height));
  copy.from =
      RegisteredMemory::Process().Seen(copy.from, SpanOf(copy.from_pitch, copy.width, copy.height));
  const Place to = Memory::PlaceOf(copy.to);
  const Place from = Memory::PlaceOf(copy.from);
  if ((to != Place::kHost &&
       !Memory::IsLive(copy.to, SpanOf(copy.to_pitch, copy.width, copy.height))) ||
      (from != Place::kHost &&
       !Memory::IsLive(copy.from, SpanOf(copy.from_pitch, copy.width, copy.height)))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool between_hosts = to != Place::kDevice && from != Place::kDevice;
  if (between_hosts && (to == Place::kHost || copy.synchronous)) return BetweenHosts(copy, stream);
  if (to == Place::kHost) return Staged(copy, stream, false);
  if (from == Place::kHost) return Staged(copy, stream, true);
  const bool touches_host = to == Place::kPinned || from == Place::kPinned;
  return Direct(copy, stream, copy.synchronous && touches_host);
}

}  // namespace shim
