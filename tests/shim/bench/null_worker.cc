#include "tests/shim/bench/null_worker.h"

#include <sys/mman.h>

#include <cassert>
#include <cstring>

#include "ipc/dispatch.h"
#include "ipc/futex.h"

namespace bench {
namespace {

constexpr int64_t kNapUs = 100'000;

}  // namespace

NullWorker::NullWorker(ipc::SessionFile file, ipc::Channel channel, uint32_t slot, int pinned_fd)
    : file_(std::move(file)),
      channel_(std::move(channel)),
      scratch_(std::make_unique<std::byte[]>(ipc::kBodyBytesMax)),
      reply_(std::make_unique<std::byte[]>(ipc::limits::kMessageBytesMax)),
      base_(ipc::limits::kSlotBase + slot * ipc::limits::kSlotBytes) {
  targets_.driver = &ipc::NullDriver();
  targets_.cublas = &ipc::NullCublas();
  targets_.cublaslt = &ipc::NullCublasLt();
  targets_.laneway = this;
  device_ =
      static_cast<std::byte*>(mmap(nullptr, ipc::limits::kDeviceArenaBytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  assert(device_ != MAP_FAILED);
  void* const window = reinterpret_cast<void*>(base_ + ipc::limits::kDeviceArenaBytes);
  [[maybe_unused]] void* const mapped =
      mmap(window, ipc::limits::kPinnedWindowBytes, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, pinned_fd, 0);
  assert(mapped == window);
}

void NullWorker::Serve() {
  while (file_.page()->loss.load(std::memory_order_relaxed) == 0) {
    const std::span<const std::byte> message =
        channel_.receiver->NextUntrusted(ipc::limits::kSpinUs, kNapUs);
    if (!message.empty()) ServeOne(message);
  }
}

void NullWorker::ServeOne(std::span<const std::byte> message) {
  ipc::MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  ipc::Writer reply({reply_.get() + sizeof header, ipc::kBodyBytesMax});
  [[maybe_unused]] const ipc::Served served =
      ipc::DispatchUntrusted(header.op, message.subspan(sizeof header), targets_, *this, &reply);
  assert(served.outcome == ipc::Outcome::kReplied);
  if ((header.flags & ipc::kWantsReply) == 0) return;
  header.bytes = static_cast<uint32_t>(sizeof header + reply.size());
  header.flags = ipc::kIsReply;
  std::memcpy(reply_.get(), &header, sizeof header);
  const std::span<std::byte> room = channel_.sender->Reserve(header.bytes, 1'000'000);
  if (room.empty()) return;
  std::memcpy(room.data(), reply_.get(), header.bytes);
  channel_.sender->Commit(header.bytes);
}

// A stream's handle is its slot, plus one so that none is null.
bool NullWorker::Translate(ipc::HandleKind kind, ipc::HandleId id, void** driver_handle) {
  uintptr_t handle = static_cast<uintptr_t>(id);
  if (kind == ipc::HandleKind::kStream) {
    handle = id == ipc::HandleId::kLegacyStream
                 ? 1
                 : handle - static_cast<uintptr_t>(ipc::HandleId::kFirst) +
                       ipc::limits::kLegacySlots + 1;
  }
  *driver_handle = reinterpret_cast<void*>(handle);
  return true;
}

bool NullWorker::Accepts(uint64_t address, uint64_t bytes) {
  return address >= base_ && address - base_ + bytes <= ipc::limits::kSlotBytes;
}

std::byte* NullWorker::At(uint64_t address) {
  const uint64_t offset = address - base_;
  return offset < ipc::limits::kDeviceArenaBytes ? device_ + offset
                                                 : reinterpret_cast<std::byte*>(address);
}

CUresult NullWorker::Place(CUstream stream, const ipc::Mark& mark) {
  if (mark.sequence == 0) return CUDA_SUCCESS;
  const uintptr_t slot = reinterpret_cast<uintptr_t>(stream) - 1;
  file_.completions()->completed[slot].store(mark.sequence, std::memory_order_release);
  if (mark.wake == 0) return CUDA_SUCCESS;
  file_.page()->client_doorbell.fetch_add(1, std::memory_order_seq_cst);
  ipc::FutexWakeAll(&file_.page()->client_doorbell);
  return CUDA_SUCCESS;
}

// --- what is measured ----------------------------------------------------------------------------

CUresult NullWorker::Ping(uint64_t token, uint64_t* echo) {
  *echo = token;
  return CUDA_SUCCESS;
}
CUresult NullWorker::Launch(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, CUstream, const ipc::LaunchAttribute*, unsigned, const void*,
                            unsigned) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::EventRecord(CUevent, CUstream stream, ipc::Mark mark) {
  return Place(stream, mark);
}
CUresult NullWorker::StreamMark(CUstream stream, ipc::Mark mark) { return Place(stream, mark); }

CUresult NullWorker::CopyInline(CUdeviceptr to, const void* bytes, size_t count, CUstream) {
  std::memcpy(At(to), bytes, count);
  return CUDA_SUCCESS;
}
CUresult NullWorker::CopyStagedIn(CUdeviceptr to, uint64_t offset, size_t count, CUstream stream,
                                  ipc::Mark mark) {
  std::memcpy(At(to), file_.staging() + offset, count);
  return Place(stream, mark);
}
CUresult NullWorker::CopyStagedOut(uint64_t offset, CUdeviceptr from, size_t count, CUstream stream,
                                   ipc::Mark mark) {
  std::memcpy(file_.staging() + offset, At(from), count);
  return Place(stream, mark);
}
CUresult NullWorker::FetchAhead(uint64_t offset, CUdeviceptr from, size_t count, CUstream stream,
                                ipc::Mark mark, uint64_t ticket) {
  std::memcpy(file_.staging() + offset, At(from), count);
  file_.page()->fetched.store(ticket);
  return Place(stream, mark);
}
CUresult NullWorker::CopyDevice(CUdeviceptr to, CUdeviceptr from, size_t count, CUstream stream,
                                ipc::Mark mark) {
  std::memcpy(At(to), At(from), count);
  return Place(stream, mark);
}

// --- what only has to exist ----------------------------------------------------------------------

CUresult NullWorker::GetDeviceInfo(CUdevice, ipc::DeviceInfo* info) {
  for (int32_t& attribute : info->attributes) attribute = 1024;
  return CUDA_SUCCESS;
}
CUresult NullWorker::ContextReset(CUdevice) { return CUDA_SUCCESS; }
CUresult NullWorker::GrowHeap(size_t) { return CUDA_SUCCESS; }
// The pages are there before anything is measured on them.
CUresult NullWorker::ArenaMap(CUdeviceptr address, size_t bytes) {
  madvise(At(address), bytes, MADV_POPULATE_WRITE);
  return CUDA_SUCCESS;
}
CUresult NullWorker::ArenaUnmap(CUdeviceptr) { return CUDA_SUCCESS; }
CUresult NullWorker::ArenaCreate(CUdeviceptr, size_t) { return CUDA_SUCCESS; }
CUresult NullWorker::ArenaMove(CUdeviceptr, CUdeviceptr) { return CUDA_SUCCESS; }
CUresult NullWorker::ShareRange(CUdeviceptr, ipc::ShareName*, CUdeviceptr*) { return CUDA_SUCCESS; }
CUresult NullWorker::MapShared(const ipc::ShareName*, CUdeviceptr) { return CUDA_SUCCESS; }
CUresult NullWorker::LaneReserve(size_t) { return CUDA_SUCCESS; }
CUresult NullWorker::LaneKeep(CUdeviceptr, size_t) { return CUDA_SUCCESS; }
CUresult NullWorker::LaneDrop(CUdeviceptr) { return CUDA_SUCCESS; }
CUresult NullWorker::StreamsJoin() { return CUDA_SUCCESS; }
CUresult NullWorker::MemInfo(size_t*, size_t*) { return CUDA_SUCCESS; }
CUresult NullWorker::PinnedAlloc(CUdeviceptr, size_t, unsigned) { return CUDA_SUCCESS; }
CUresult NullWorker::PinnedFree(CUdeviceptr) { return CUDA_SUCCESS; }
CUresult NullWorker::CopyPitched(CUdeviceptr, size_t, CUdeviceptr, size_t, size_t, size_t,
                                 CUstream stream, ipc::Mark mark) {
  return Place(stream, mark);
}
CUresult NullWorker::CopyPitchedStagedIn(CUdeviceptr, size_t, uint64_t, size_t, size_t,
                                         CUstream stream, ipc::Mark mark) {
  return Place(stream, mark);
}
CUresult NullWorker::CopyPitchedStagedOut(uint64_t, CUdeviceptr, size_t, size_t, size_t,
                                          CUstream stream, ipc::Mark mark) {
  return Place(stream, mark);
}
CUresult NullWorker::HasModule(const ipc::ModuleHash*, int* known) {
  *known = 1;
  return CUDA_SUCCESS;
}
CUresult NullWorker::ModuleBytes(const ipc::ModuleHash*, uint64_t, uint64_t, const void*, size_t) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::LoadModule(CUmodule*, const ipc::ModuleHash*, const CUjit_option*,
                                const uint64_t*, unsigned, char*, unsigned, char*, unsigned) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::LinkImages(const ipc::LinkInput*, unsigned, const CUjit_option*,
                                const uint64_t*, unsigned, ipc::ModuleHash*, uint64_t*, char*,
                                unsigned, char*, unsigned) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult NullWorker::ImageBytes(const ipc::ModuleHash*, uint64_t, void*, size_t) {
  return CUDA_ERROR_INVALID_IMAGE;
}
CUresult NullWorker::UnloadModule(CUmodule) { return CUDA_SUCCESS; }
// Eight parameters of eight bytes.
CUresult NullWorker::GetFunction(CUfunction*, CUmodule, const char*, ipc::FunctionInfo* info,
                                 ipc::ParamLayout* params, unsigned params_max) {
  info->params = 8;
  info->param_bytes = 64;
  info->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
  for (unsigned i = 0; i < 8 && i < params_max; ++i) params[i] = {i * 8, 8};
  return CUDA_SUCCESS;
}
CUresult NullWorker::GetGlobal(CUdeviceptr*, size_t*, CUmodule, const char*) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::FunctionNames(CUmodule, unsigned*, char*, unsigned) { return CUDA_SUCCESS; }
CUresult NullWorker::StreamCreate(CUstream*, unsigned, int, unsigned) { return CUDA_SUCCESS; }
CUresult NullWorker::StreamDestroy(CUstream) { return CUDA_SUCCESS; }
CUresult NullWorker::EventWake(CUevent) { return CUDA_SUCCESS; }
CUresult NullWorker::HostCall(CUstream stream, uint64_t, ipc::Mark mark) {
  return Place(stream, mark);
}
CUresult NullWorker::Boundary(const ipc::BoundaryInfo*) { return CUDA_SUCCESS; }
CUresult NullWorker::GraphBegin(CUgraphExec*) { return CUDA_SUCCESS; }
CUresult NullWorker::GraphKernel(CUgraphExec, unsigned, CUfunction, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, unsigned, unsigned, unsigned, const void*,
                                 unsigned) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::GraphFill(CUgraphExec, unsigned, CUdeviceptr, size_t, unsigned, unsigned,
                               size_t, size_t) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::GraphCopy(CUgraphExec, unsigned, CUdeviceptr, size_t, CUdeviceptr, size_t,
                               size_t, size_t) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::GraphEmpty(CUgraphExec, unsigned) { return CUDA_SUCCESS; }
CUresult NullWorker::GraphEdges(CUgraphExec, unsigned, const uint32_t*, unsigned) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::GraphChild(CUgraphExec, unsigned, CUgraphExec) { return CUDA_SUCCESS; }
CUresult NullWorker::GraphSeal(CUgraphExec) { return CUDA_SUCCESS; }
CUresult NullWorker::GraphSetKernel(CUgraphExec, unsigned, CUfunction, unsigned, unsigned, unsigned,
                                    unsigned, unsigned, unsigned, unsigned, const void*, unsigned) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::GraphLaunch(CUgraphExec, CUstream) { return CUDA_SUCCESS; }
CUresult NullWorker::GraphEnd(CUgraphExec) { return CUDA_SUCCESS; }
CUresult NullWorker::GraphCapture(CUgraphExec*) { return CUDA_SUCCESS; }
CUresult NullWorker::GraphCaptured(CUgraphExec) { return CUDA_SUCCESS; }
CUresult NullWorker::GraphCondition(CUgraphExec, unsigned, uint64_t, unsigned, unsigned) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::GraphConditional(CUgraphExec, unsigned, unsigned, unsigned, unsigned) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::GraphInside(CUgraphExec, unsigned, unsigned, unsigned) { return CUDA_SUCCESS; }
CUresult NullWorker::OrderLaunches(unsigned, unsigned, const uint32_t*, unsigned, const uint32_t*,
                                   unsigned, const uint32_t*, unsigned) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::OrderRenamedLaunches(unsigned, unsigned, const uint32_t*, unsigned,
                                          const uint32_t*, unsigned, const uint32_t*, unsigned,
                                          const uint32_t*, unsigned, unsigned) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::ForgetOrders() { return CUDA_SUCCESS; }
CUresult NullWorker::ArrayCreate(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*) { return CUDA_SUCCESS; }
CUresult NullWorker::ArrayDestroy(CUarray) { return CUDA_SUCCESS; }
CUresult NullWorker::MipmapCreate(CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::MipmapLevel(CUarray*, CUmipmappedArray, unsigned) { return CUDA_SUCCESS; }
CUresult NullWorker::MipmapDestroy(CUmipmappedArray) { return CUDA_SUCCESS; }
CUresult NullWorker::TextureOfArray(CUtexObject*, CUarray, const CUDA_TEXTURE_DESC*,
                                    const ipc::TextureView*) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::TextureOfMipmap(CUtexObject*, CUmipmappedArray, const CUDA_TEXTURE_DESC*,
                                     const ipc::TextureView*) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::TextureOfMemory(CUtexObject*, CUdeviceptr, const ipc::LinearTexels*,
                                     const CUDA_TEXTURE_DESC*, const ipc::TextureView*) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::TextureDestroy(CUtexObject) { return CUDA_SUCCESS; }
CUresult NullWorker::SurfaceOfArray(CUsurfObject*, CUarray) { return CUDA_SUCCESS; }
CUresult NullWorker::SurfaceDestroy(CUsurfObject) { return CUDA_SUCCESS; }
CUresult NullWorker::CopyArray(CUarray, const ipc::ArrayBox*, CUdeviceptr, CUstream, ipc::Mark) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::CopyArrayStaged(CUarray, const ipc::ArrayBox*, uint64_t, size_t, CUstream,
                                     ipc::Mark) {
  return CUDA_SUCCESS;
}
CUresult NullWorker::CopyArrays(CUarray, const ipc::ArrayPlace*, CUarray, const ipc::ArrayPlace*,
                                const ipc::BoxSize*, CUstream, ipc::Mark) {
  return CUDA_SUCCESS;
}

}  // namespace bench
