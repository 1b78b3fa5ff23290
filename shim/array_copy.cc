#include "shim/array_copy.h"

#include <algorithm>
#include <cstring>

#include "ipc/calls/array_shape.h"
#include "shim/memory.h"
#include "shim/registered_memory.h"
#include "shim/send.h"
#include "shim/staging.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace shim {
namespace {

using Place = Memory::Place;

// One end of a copy, as the structure describes it. Both ends have the same fields there, under
// names of their own.
struct BoxEnd {
  CUmemorytype type;
  CUarray array;
  const void* host;
  CUdeviceptr device;
  ipc::ArrayPlace at;
  uint64_t pitch, rows;
};

BoxEnd TargetEnd(const CUDA_MEMCPY3D& p) {
  return {p.dstMemoryType, p.dstArray, p.dstHost, p.dstDevice, {p.dstXInBytes, p.dstY, p.dstZ},
          p.dstPitch,      p.dstHeight};
}

BoxEnd SourceEnd(const CUDA_MEMCPY3D& p) {
  return {p.srcMemoryType, p.srcArray, p.srcHost, p.srcDevice, {p.srcXInBytes, p.srcY, p.srcZ},
          p.srcPitch,      p.srcHeight};
}

ipc::BoxSize BoxSizeOf(const CUDA_MEMCPY3D& p) { return {p.WidthInBytes, p.Height, p.Depth}; }

bool IsEmptyBox(const ipc::BoxSize& size) {
  return size.width == 0 || size.height == 0 || size.depth == 0;
}

bool IsArray(const BoxEnd& end) { return end.type == CU_MEMORYTYPE_ARRAY; }

// The end that is no array: where the box begins, and how its rows lie.
struct LinearEnd {
  uint64_t address = 0;
  uint64_t pitch = 0, rows = 0;
};

// A pitch of 0 stands for packed rows, a height of 0 for slices as high as the copy.
LinearEnd LinearEndOf(const BoxEnd& end, const ipc::BoxSize& size) {
  LinearEnd line;
  line.pitch = end.pitch != 0 ? end.pitch : size.width;
  line.rows = end.rows != 0 ? end.rows : size.height;
  const bool host = end.type == CU_MEMORYTYPE_HOST;
  line.address = (host ? reinterpret_cast<uint64_t>(end.host) : end.device) +
                 (end.at.z * line.rows + end.at.y) * line.pitch + end.at.x;
  uint64_t bytes = 0;
  if (!IsEmptyBox(size) && ipc::BoxReach(line.pitch, line.rows, size, &bytes))
    line.address = RegisteredMemory::Process().Seen(line.address, bytes);
  return line;
}

// The worker checks the box again. A program hears of its own mistake here, without a round trip.
CUresult CheckArray(const BoxEnd& end, const ipc::BoxSize& size) {
  const Array* const array = State::Process().arrays.Find(reinterpret_cast<uint64_t>(end.array));
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return ipc::Contains(ipc::ShapeOf(array->descriptor), end.at, size) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_VALUE;
}

CUresult CheckMemory(const BoxEnd& end, const ipc::BoxSize& size) {
  if (end.type != CU_MEMORYTYPE_HOST && end.type != CU_MEMORYTYPE_DEVICE &&
      end.type != CU_MEMORYTYPE_UNIFIED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (IsEmptyBox(size)) return CUDA_SUCCESS;
  const LinearEnd line = LinearEndOf(end, size);
  uint64_t bytes = 0;
  if (!ipc::BoxReach(line.pitch, line.rows, size, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  // A device end must be one: host memory may not be read in its place.
  if (Memory::PlaceOf(line.address) == Place::kHost)
    return end.type == CU_MEMORYTYPE_DEVICE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  return Memory::IsLive(line.address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CheckEnd(const BoxEnd& end, const ipc::BoxSize& size) {
  return IsArray(end) ? CheckArray(end, size) : CheckMemory(end, size);
}

// --- sending -------------------------------------------------------------------------------------

// Copies that nobody waits for are held back where the device has too many of them before it.
CUresult FinishCopy(CUresult sent, const Stream& stream, bool wait, uint64_t sequence) {
  if (sent != CUDA_SUCCESS) return sent;
  return wait ? WaitForSequence(stream, sequence) : Throttle(stream);
}

CUresult BetweenArrays(const BoxEnd& to, const BoxEnd& from, const ipc::BoxSize& size,
                       const Stream& stream) {
  const CUresult sent = Post<ipc::Op::CopyArrays>(stream.wire, to.array, &to.at, from.array,
                                                  &from.at, &size, ProgramOf(stream), ipc::Mark());
  return FinishCopy(sent, stream, false, 0);
}

CUresult CopyDirectly(CUarray array, const ipc::ArrayBox& box, uint64_t memory, bool wait,
                      const Stream& stream) {
  CUarray named = array;
  const ipc::ArrayBox* sent_box = &box;
  CUdeviceptr address = memory;
  CUstream program = ProgramOf(stream);
  ipc::Mark mark;
  const CUresult sent = PostWith<ipc::Op::CopyArray>(
      stream.wire,
      [&] {
        if (wait) mark = Streams::Process().NextMark(stream, false);
      },
      named, sent_box, address, program, mark);
  return FinishCopy(sent, stream, wait, mark.sequence);
}

// --- pageable memory -----------------------------------------------------------------------------

// A part of a box that fits a chunk, and where the box's memory begins.
struct BoxPart {
  ipc::ArrayPlace from;  // counted from the box's place
  ipc::BoxSize size;
};

// Rows of the part, packed in the chunk and pitched in the program's memory.
template <class Move>
void ForEachRow(const BoxPart& part, const ipc::ArrayBox& box, uint64_t memory, std::byte* chunk,
                Move move) {
  for (uint64_t z = 0; z < part.size.depth; ++z) {
    for (uint64_t y = 0; y < part.size.height; ++y) {
      const uint64_t row = (part.from.z + z) * box.rows + part.from.y + y;
      move(reinterpret_cast<std::byte*>(memory + row * box.pitch + part.from.x), chunk,
           part.size.width);
      chunk += part.size.width;
    }
  }
}

// The mark is given under the send lock, in the order of the ring.
CUresult SendPart(CUarray array, const ipc::ArrayBox& part, unsigned chunk, const Stream& stream,
                  ipc::Mark* mark) {
  CUarray named = array;
  const ipc::ArrayBox* box = &part;
  uint64_t offset = Staging::OffsetOf(chunk);
  size_t bytes = part.size.width * part.size.height * part.size.depth;
  CUstream program = ProgramOf(stream);
  return PostWith<ipc::Op::CopyArrayStaged>(
      stream.wire, [&] { *mark = Streams::Process().NextMark(stream, false); }, named, box, offset,
      bytes, program, *mark);
}

// Through one chunk. Bytes to the program's memory have arrived when it returns.
CUresult StagePart(CUarray array, const ipc::ArrayBox& box, uint64_t memory, const BoxPart& part,
                   const Stream& stream) {
  unsigned chunk = 0;
  if (const CUresult result = Staging::Process().Take(&chunk); result != CUDA_SUCCESS)
    return result;
  std::byte* const staged = Staging::BytesOf(chunk);
  const bool in = box.into_array != 0;
  if (in) {
    ForEachRow(part, box, memory, staged,
               [](std::byte* row, std::byte* at, size_t bytes) { std::memcpy(at, row, bytes); });
  }
  ipc::ArrayBox sent = box;
  sent.at = {box.at.x + part.from.x, box.at.y + part.from.y, box.at.z + part.from.z};
  sent.size = part.size;
  sent.pitch = part.size.width;
  sent.rows = part.size.height;
  ipc::Mark mark;
  CUresult result = SendPart(array, sent, chunk, stream, &mark);
  const bool arrives = result == CUDA_SUCCESS && !in;
  if (arrives) result = WaitForSequence(stream, mark.sequence);
  if (arrives && result == CUDA_SUCCESS) {
    ForEachRow(part, box, memory, staged,
               [](std::byte* row, std::byte* at, size_t bytes) { std::memcpy(row, at, bytes); });
  }
  const bool done = !in && result == CUDA_SUCCESS;
  Staging::Process().Give(chunk, stream, done ? 0 : mark.sequence);
  return result;
}

// As many whole slices at a time as fit a chunk, else rows, else parts of one row.
CUresult CopyStaged(CUarray array, const ipc::ArrayBox& box, uint64_t memory,
                    const Stream& stream) {
  constexpr uint64_t kChunk = Staging::kChunkBytes;
  const ipc::BoxSize& whole = box.size;
  const uint64_t width = std::min(whole.width, kChunk);
  const uint64_t height = std::clamp<uint64_t>(kChunk / width, 1, whole.height);
  const uint64_t depth = height < whole.height || width < whole.width
                             ? 1
                             : std::clamp<uint64_t>(kChunk / (width * height), 1, whole.depth);
  for (uint64_t z = 0; z < whole.depth; z += depth) {
    for (uint64_t y = 0; y < whole.height; y += height) {
      for (uint64_t x = 0; x < whole.width; x += width) {
        const BoxPart part = {{x, y, z},
                              {std::min(width, whole.width - x), std::min(height, whole.height - y),
                               std::min(depth, whole.depth - z)}};
        const CUresult result = StagePart(array, box, memory, part, stream);
        if (result != CUDA_SUCCESS) return result;
      }
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

bool HasArray(const CUDA_MEMCPY3D& params) {
  return IsArray(TargetEnd(params)) || IsArray(SourceEnd(params));
}

bool FromPageable(const CUDA_MEMCPY3D& params) {
  const BoxEnd from = SourceEnd(params);
  return !IsArray(from) &&
         Memory::PlaceOf(LinearEndOf(from, BoxSizeOf(params)).address) == Place::kHost;
}

CUresult CheckCopyWithArray(const CUDA_MEMCPY3D& params) {
  if (params.srcLOD != 0 || params.dstLOD != 0) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult result = CheckEnd(TargetEnd(params), BoxSizeOf(params));
  return result == CUDA_SUCCESS ? CheckEnd(SourceEnd(params), BoxSizeOf(params)) : result;
}

CUresult CopyWithArray(const CUDA_MEMCPY3D& params, bool synchronous, const Stream& stream) {
  const ipc::BoxSize size = BoxSizeOf(params);
  const CUresult checked = CheckCopyWithArray(params);
  if (checked != CUDA_SUCCESS || IsEmptyBox(size)) return checked;
  const BoxEnd to = TargetEnd(params), from = SourceEnd(params);
  if (IsArray(to) && IsArray(from)) return BetweenArrays(to, from, size, stream);
  const BoxEnd& array = IsArray(to) ? to : from;
  const LinearEnd line = LinearEndOf(IsArray(to) ? from : to, size);
  ipc::ArrayBox box;
  box.at = array.at;
  box.size = size;
  box.pitch = line.pitch;
  box.rows = line.rows;
  box.into_array = IsArray(to) ? 1 : 0;
  const Place place = Memory::PlaceOf(line.address);
  if (place == Place::kHost) return CopyStaged(array.array, box, line.address, stream);
  return CopyDirectly(array.array, box, line.address, synchronous && place == Place::kPinned,
                      stream);
}

}  // namespace shim
