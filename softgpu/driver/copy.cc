#include "softgpu/driver/copy.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ipc/calls/capped.h"
#include "ipc/calls/limits.h"
#include "softgpu/driver/access_operation.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/virtual_device.h"
#include "softgpu/driver/work.h"

namespace softgpu {
namespace {

constexpr uint64_t kSnapshotBytesMax = 64
                                       << 10;  // pageable sources up to this are copied at the call

std::byte* Pointer(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// Bytes from the first to one past the last byte of a side; UINT64_MAX when there is no such
// number.
uint64_t SpanOf(const CopySide& side, const CopyBox& box) {
  return ipc::CappedSum(ipc::CappedSum(ipc::CappedProduct(box.depth - 1, side.slice),
                                       ipc::CappedProduct(box.height - 1, side.pitch)),
                        box.width);
}

bool InWindow(uint64_t address) {
  return address >= ipc::limits::kWindowBase && address < ipc::limits::kWindowEnd;
}

void Perform(const CopyBox& box) {
  for (uint64_t z = 0; z < box.depth; ++z) {
    for (uint64_t y = 0; y < box.height; ++y) {
      std::memmove(
          Pointer(box.destination.address + z * box.destination.slice + y * box.destination.pitch),
          Pointer(box.source.address + z * box.source.slice + y * box.source.pitch), box.width);
    }
  }
}

std::string Describe(const CopyBox& box) {
  char text[128];
  std::snprintf(text, sizeof text, "copy of %llu bytes from 0x%llx to 0x%llx",
                static_cast<unsigned long long>(box.width * box.height * box.depth),
                static_cast<unsigned long long>(box.source.address),
                static_cast<unsigned long long>(box.destination.address));
  return text;
}

std::string Describe(const Fill& fill) {
  char text[96];
  std::snprintf(text, sizeof text, "fill of %llu bytes at 0x%llx",
                static_cast<unsigned long long>(fill.width * fill.height * fill.element_bytes),
                static_cast<unsigned long long>(fill.address));
  return text;
}

// Rows without gaps are one long row.
void Flatten(CopyBox* box) {
  if (box->depth > 1 || box->height == 1) return;
  if (box->destination.pitch != box->width || box->source.pitch != box->width) return;
  box->width *= box->height;
  box->height = 1;
}

CUresult CheckSide(const CopySide& side, const CopyBox& box) {
  if (box.height > 1 && side.pitch < box.width) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "a pitch is smaller than the row");
  }
  // An address of the window is the device's, whatever the caller left open.
  const bool unified = side.memory == CopySide::Memory::kUnified && InWindow(side.address);
  if (side.memory != CopySide::Memory::kDevice && !unified) return CUDA_SUCCESS;
  if (Driver::Get().memory_map().Covers(side.address, SpanOf(side, box))) return CUDA_SUCCESS;
  return Fail(CUDA_ERROR_INVALID_VALUE, "the device range is not allocated memory");
}

bool IsPageable(const CopySide& side, const CopyBox& box) {
  if (side.memory == CopySide::Memory::kDevice) return false;
  return Driver::Get().memory_map().Pageable(side.address, SpanOf(side, box));
}

// Host memory of any kind: what a synchronous call waits for.
bool IsHost(const CopySide& side) {
  if (side.memory != CopySide::Memory::kUnified) return side.memory == CopySide::Memory::kHost;
  const std::shared_ptr<Allocation> allocation = Driver::Get().memory_map().Find(side.address);
  return allocation == nullptr || allocation->host();
}

bool Empty(const CopyBox& box) { return box.width == 0 || box.height == 0 || box.depth == 0; }

bool WantsSync(uint64_t address) {
  const std::shared_ptr<Allocation> allocation = Driver::Get().memory_map().Find(address);
  return allocation != nullptr && allocation->sync_memops;
}

// Synchronous copies between devices don't hold up the host.
bool SynchronousWaits(const Context& context, const CopyBox& box) {
  return IsHost(box.destination) || IsHost(box.source) ||
         (context.flags() & CU_CTX_SYNC_MEMOPS) != 0 || WantsSync(box.destination.address) ||
         WantsSync(box.source.address);
}

// Pageable memory can't be left to the device, but a small source can be read at once.
bool AsynchronousWaits(const CopyBox& box) {
  if (IsPageable(box.destination, box)) return true;
  return IsPageable(box.source, box) && SpanOf(box.source, box) > kSnapshotBytesMax;
}

// What a copy takes in virtual time, if there is any. A copy within the host takes nothing of the
// device; one within the device reads and writes its memory.
scheduler::streams::TimedWork TimeOf(const CopyBox& box) {
  const VirtualDevice* const device = VirtualDevice::Get();
  if (device == nullptr) return {};
  const bool from_host = IsHost(box.source), to_host = IsHost(box.destination);
  const uint64_t bytes = ipc::CappedProduct(ipc::CappedProduct(box.width, box.height), box.depth);
  if (from_host != to_host) return device->table().BesideDevice(bytes, to_host);
  return to_host ? scheduler::streams::TimedWork{}
                 : device->table().OnDevice(ipc::CappedProduct(bytes, 2));
}

// The source is read now: the caller may change it as soon as the call returns.
std::unique_ptr<Operation> SnapshotOperation(CopyBox box) {
  const scheduler::streams::TimedWork timed = TimeOf(box);
  const uint64_t span = SpanOf(box.source, box);
  std::vector<std::byte> bytes(Pointer(box.source.address), Pointer(box.source.address) + span);
  const uint64_t from = box.source.address;
  box.source.address = reinterpret_cast<uint64_t>(bytes.data());  // moving a vector leaves it there
  std::unique_ptr<Operation> copy = MakeAccess([box, bytes = std::move(bytes)] { Perform(box); },
                                               [box, from]() mutable {
                                                 box.source.address = from;
                                                 return Describe(box);
                                               });
  copy->timed = timed;
  return copy;
}

template <class T>
void FillRow(uint64_t address, uint64_t count, uint32_t value) {
  T* const row = reinterpret_cast<T*>(address);
  std::fill(row, row + count, static_cast<T>(value));
}

void Perform(const Fill& fill) {
  for (uint64_t y = 0; y < fill.height; ++y) {
    const uint64_t row = fill.address + y * fill.pitch;
    if (fill.element_bytes == 4) {
      FillRow<uint32_t>(row, fill.width, fill.value);
    } else if (fill.element_bytes == 2) {
      FillRow<uint16_t>(row, fill.width, fill.value);
    } else {
      std::memset(Pointer(row), static_cast<int>(fill.value), fill.width);
    }
  }
}

}  // namespace

std::unique_ptr<Operation> MakeCopy(const CopyBox& box) {
  std::unique_ptr<Operation> copy =
      MakeAccess([box] { Perform(box); }, [box] { return Describe(box); });
  copy->timed = TimeOf(box);
  return copy;
}

std::unique_ptr<Operation> MakeFill(const Fill& fill) {
  std::unique_ptr<Operation> operation =
      MakeAccess([fill] { Perform(fill); }, [fill] { return Describe(fill); });
  const uint64_t elements = ipc::CappedProduct(fill.width, fill.height);
  const VirtualDevice* const device = VirtualDevice::Get();
  if (device != nullptr)
    operation->timed = device->table().OnDevice(ipc::CappedProduct(elements, fill.element_bytes));
  return operation;
}

CUresult CheckCopy(const CopyBox& box) {
  if (Empty(box)) return CUDA_SUCCESS;
  const CUresult result = CheckSide(box.destination, box);
  return result == CUDA_SUCCESS ? CheckSide(box.source, box) : result;
}

CUresult CheckFill(const Fill& fill) {
  if (fill.width == 0 || fill.height == 0) return CUDA_SUCCESS;
  const unsigned bytes = fill.element_bytes;
  if (bytes != 1 && bytes != 2 && bytes != 4) return CUDA_ERROR_INVALID_VALUE;
  if (fill.address % bytes != 0 || (fill.height > 1 && fill.pitch % bytes != 0)) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the address or the pitch is not aligned to the element");
  }
  const uint64_t row_bytes = ipc::CappedProduct(fill.width, bytes);
  if (fill.height > 1 && fill.pitch < row_bytes) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the pitch is smaller than the row");
  }
  const uint64_t span = ipc::CappedSum(ipc::CappedProduct(fill.height - 1, fill.pitch), row_bytes);
  if (!Driver::Get().memory_map().Covers(fill.address, span)) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the range is not allocated memory");
  }
  return CUDA_SUCCESS;
}

CUresult SubmitCopy(const CopyBox& given, CUstream stream_handle, CopyMode mode) {
  std::shared_ptr<Stream> stream;
  CUresult result = FindStream(stream_handle, &stream);
  if (result == CUDA_SUCCESS) result = CheckCopy(given);
  if (result != CUDA_SUCCESS || Empty(given)) return result;
  if (IsCapturing(*stream)) {
    if (mode == CopyMode::kSynchronous) return RefuseWhileCapturing(*stream);
    return AddToCapture(*stream, MemcpyWork{ParamsOf(given)});
  }
  result = CheckLegacyCapture(*stream);
  if (result != CUDA_SUCCESS) return result;
  CopyBox box = given;
  Flatten(&box);
  Context& context = *stream->context();
  const bool waits =
      mode == CopyMode::kSynchronous ? SynchronousWaits(context, box) : AsynchronousWaits(box);
  const bool snapshot = !waits && mode == CopyMode::kAsynchronous && IsPageable(box.source, box);
  std::unique_ptr<Operation> copy = snapshot ? SnapshotOperation(box) : MakeCopy(box);
  copy->SetStream(stream_handle);
  if (waits) return context.Run(stream, std::move(copy));
  context.Submit(stream, std::move(copy));
  return CUDA_SUCCESS;
}

CUresult SubmitFill(const Fill& fill, CUstream stream_handle, CopyMode mode) {
  std::shared_ptr<Stream> stream;
  CUresult result = FindStream(stream_handle, &stream);
  if (result == CUDA_SUCCESS) result = CheckFill(fill);
  if (result != CUDA_SUCCESS || fill.width == 0 || fill.height == 0) return result;
  if (IsCapturing(*stream)) {
    if (mode == CopyMode::kSynchronous) return RefuseWhileCapturing(*stream);
    return AddToCapture(*stream, MemsetWork{fill});
  }
  result = CheckLegacyCapture(*stream);
  if (result != CUDA_SUCCESS) return result;
  Context& context = *stream->context();
  const std::shared_ptr<Allocation> target = Driver::Get().memory_map().Find(fill.address);
  const bool waits = mode == CopyMode::kSynchronous && target != nullptr &&
                     (target->host() || target->sync_memops);
  std::unique_ptr<Operation> operation = MakeFill(fill);
  operation->SetStream(stream_handle);
  if (waits) return context.Run(stream, std::move(operation));
  context.Submit(stream, std::move(operation));
  return CUDA_SUCCESS;
}

}  // namespace softgpu
