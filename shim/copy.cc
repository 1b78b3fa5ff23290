#include "shim/copy.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>

#include "shim/client.h"
#include "shim/fetch_ahead.h"
#include "shim/recording/recorder.h"
#include "shim/registered_memory.h"
#include "shim/send.h"
#include "shim/staging.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace shim {
namespace {

using Place = Memory::Place;

constexpr size_t kInlineBytesMax = 48u << 10;
constexpr size_t kPieceBytesMin = 128u
                                  << 10;  // smaller pieces cost more messages than they overlap

void* Host(uint64_t address) { return reinterpret_cast<void*>(address); }

// Enough pieces that both sides work at once, large enough that messages don't count.
size_t PieceBytes(size_t bytes) {
  return std::min(Staging::kChunkBytes, std::max(kPieceBytesMin, bytes / 4 + 1));
}

// Nothing else is before it on the stream.
bool IsShort(const Copy& copy, const Stream& stream) {
  Streams& streams = Streams::Process();
  return copy.bytes <= ipc::limits::kShortCopyBytes && streams.IsClean(stream) &&
         Client::Process().Completed(stream.slot, streams.SlotOf(stream).covering.load());
}

CUresult WaitForCopy(const Stream& stream, uint64_t sequence, bool is_short) {
  return is_short ? WaitForShortCopy(stream, sequence) : WaitForSequence(stream, sequence);
}

CUresult Direct(const Copy& copy, const Stream& stream, bool wait) {
  const bool is_short = wait && IsShort(copy, stream);
  CUdeviceptr to = copy.to;
  CUdeviceptr from = copy.from;
  size_t bytes = copy.bytes;
  CUstream program = ProgramOf(stream);
  ipc::Mark mark;
  const CUresult result = PostWith<ipc::Op::CopyDevice>(
      stream.wire,
      [&] {
        if (wait) mark = Streams::Process().NextMark(stream, false);
      },
      to, from, bytes, program, mark);
  if (result != CUDA_SUCCESS) return result;
  return wait ? WaitForCopy(stream, mark.sequence, is_short) : Throttle(stream);
}

CUresult StageIn(const Copy& copy, const Stream& stream) {
  const size_t piece = PieceBytes(copy.bytes);
  for (size_t done = 0; done < copy.bytes;) {
    CUdeviceptr to = copy.to + done;
    size_t bytes = std::min(piece, copy.bytes - done);
    unsigned chunk = 0;
    if (const CUresult result = Staging::Process().Take(&chunk); result != CUDA_SUCCESS)
      return result;
    std::memcpy(Staging::BytesOf(chunk), Host(copy.from + done), bytes);
    uint64_t offset = Staging::OffsetOf(chunk);
    CUstream program = ProgramOf(stream);
    ipc::Mark mark;
    const CUresult result = PostWith<ipc::Op::CopyStagedIn>(
        stream.wire, [&] { mark = Streams::Process().NextMark(stream, false); }, to, offset, bytes,
        program, mark);
    Staging::Process().Give(chunk, stream, result == CUDA_SUCCESS ? mark.sequence : 0);
    if (result != CUDA_SUCCESS) return result;
    done += bytes;
  }
  return CUDA_SUCCESS;
}

// One piece on its way to the program's memory.
struct Arriving {
  unsigned chunk;
  uint64_t sequence;
  size_t at;
  size_t bytes;
};

// A copy out through as many chunks at once as are free.
class StageOut {
 public:
  StageOut(const Copy& copy, const Stream& stream) : copy_(copy), stream_(stream) {}

  CUresult Run() {
    const size_t piece = PieceBytes(copy_.bytes);
    CUresult result = CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && (sent_ < copy_.bytes || !arriving_.empty())) {
      while (sent_ < copy_.bytes && result == CUDA_SUCCESS && Chunk()) {
        result = Send(std::min(piece, copy_.bytes - sent_));
      }
      if (result == CUDA_SUCCESS) result = arriving_.empty() ? Lost() : TakeOne();
    }
    for (const Arriving& left : arriving_)
      Staging::Process().Give(left.chunk, stream_, left.sequence);
    return result;
  }

 private:
  bool Chunk() {
    if (!arriving_.empty()) return Staging::Process().TryTake(&chunk_);
    return Staging::Process().Take(&chunk_) == CUDA_SUCCESS;
  }
  static CUresult Lost() { return Client::Process().Ready(); }

  CUresult Send(size_t bytes) {
    uint64_t offset = Staging::OffsetOf(chunk_);
    CUdeviceptr from = copy_.from + sent_;
    CUstream program = ProgramOf(stream_);
    ipc::Mark mark;
    const CUresult result = PostWith<ipc::Op::CopyStagedOut>(
        stream_.wire, [&] { mark = Streams::Process().NextMark(stream_, false); }, offset, from,
        bytes, program, mark);
    if (result != CUDA_SUCCESS) {
      Staging::Process().Give(chunk_, stream_, 0);
      return result;
    }
    arriving_.push_back({chunk_, mark.sequence, sent_, bytes});
    sent_ += bytes;
    return CUDA_SUCCESS;
  }

  CUresult TakeOne() {
    const Arriving first = arriving_.front();
    const CUresult result = WaitForCopy(stream_, first.sequence, short_);
    if (result != CUDA_SUCCESS) return result;
    std::memcpy(Host(copy_.to + first.at), Staging::BytesOf(first.chunk), first.bytes);
    Staging::Process().Give(first.chunk, stream_, 0);
    arriving_.pop_front();
    return CUDA_SUCCESS;
  }

  const Copy& copy_;
  const Stream& stream_;
  std::deque<Arriving> arriving_;
  const bool short_ = IsShort(copy_, stream_);
  size_t sent_ = 0;
  unsigned chunk_ = 0;
};

CUresult ReadBack(const Copy& copy, const Stream& stream) {
  const CUresult result = StageOut(copy, stream).Run();
  recording::Recorder* const recorder = recording::Recorder::Process();
  if (recorder != nullptr && result == CUDA_SUCCESS)
    recorder->OnReadBack({static_cast<const std::byte*>(Host(copy.to)), copy.bytes});
  return result;
}

CUresult Inline(const Copy& copy, const Stream& stream) {
  const CUresult result = Post<ipc::Op::CopyInline>(stream.wire, static_cast<CUdeviceptr>(copy.to),
                                                    static_cast<const void*>(Host(copy.from)),
                                                    copy.bytes, ProgramOf(stream));
  return result == CUDA_SUCCESS ? Throttle(stream) : result;
}

bool IsFine(Place place, uint64_t address, size_t bytes) {
  return place == Place::kHost || Memory::IsLive(address, bytes);
}

}  // namespace

CUresult CopyLinear(const Copy& asked, const Stream& stream) {
  if (asked.bytes == 0) return CUDA_SUCCESS;
  Copy copy = asked;
  copy.to = RegisteredMemory::Process().Seen(asked.to, asked.bytes);
  copy.from = RegisteredMemory::Process().Seen(asked.from, asked.bytes);
  const Place to = Memory::PlaceOf(copy.to);
  const Place from = Memory::PlaceOf(copy.from);
  if (!IsFine(to, copy.to, copy.bytes) || !IsFine(from, copy.from, copy.bytes))
    return CUDA_ERROR_INVALID_VALUE;
  const bool between_hosts = to != Place::kDevice && from != Place::kDevice;
  // Host to host, in stream order. What a caller waits for is not worth the worker's copy.
  if (between_hosts && (to == Place::kHost || copy.synchronous)) {
    const CUresult result = SynchronizeStream(stream);
    if (result == CUDA_SUCCESS) std::memmove(Host(copy.to), Host(copy.from), copy.bytes);
    return result;
  }
  if (to == Place::kHost) {
    const std::optional<CUresult> taken = FetchAhead::Process().Take(copy);
    return taken.has_value() ? *taken : ReadBack(copy, stream);
  }
  if (from == Place::kHost)
    return copy.bytes <= kInlineBytesMax ? Inline(copy, stream) : StageIn(copy, stream);
  const bool touches_host = to == Place::kPinned || from == Place::kPinned;
  return Direct(copy, stream, copy.synchronous && touches_host);
}

}  // namespace shim
