#include "daemon/worker/swap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ipc/driver_table.h"

namespace worker {
namespace {

constexpr absl::Duration kStep = absl::Microseconds(20);

uint64_t HalfOfMemory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 2;
}

}  // namespace

SwapSpace::SwapSpace(int64_t limit_bytes)
    : limit_bytes_(limit_bytes < 0 ? HalfOfMemory() : static_cast<uint64_t>(limit_bytes)) {}

absl::Status SwapSpace::Take(uint64_t bytes) {
  uint64_t before = used_.load();
  do {
    if (bytes > limit_bytes_ || before > limit_bytes_ - bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("swapping out ", bytes, " bytes needs more host memory than --swap leaves (",
                       before, " of ", limit_bytes_, " bytes are used); raise --swap"));
    }
  } while (!used_.compare_exchange_weak(before, before + bytes));
  return absl::OkStatus();
}

absl::StatusOr<HostMemory> HostMemory::Create(SwapSpace* space, uint64_t bytes) {
  const absl::Status taken = space->Take(bytes);
  if (!taken.ok()) return taken;
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    space->Give(bytes);
    return absl::ResourceExhaustedError(absl::StrCat("the host has no ", bytes,
                                                     " bytes to swap into: ", std::strerror(errno),
                                                     "; lower --swap or end a program"));
  }
  HostMemory memory;
  memory.space_ = space;
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return memory;
}

HostMemory::HostMemory(HostMemory&& other) noexcept { *this = std::move(other); }

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  std::swap(space_, other.space_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostMemory::~HostMemory() {
  if (data_ == nullptr) return;
  munmap(data_, bytes_);
  space_->Give(bytes_);
}

ChunkedCopy::ChunkedCopy(const Environment& environment, int device)
    : environment_(environment), stream_(environment, device), status_(stream_.status()) {
  for (int i = 0; i < kBuffers && status_ == CUDA_SUCCESS; ++i) {
    status_ = environment.driver->cuMemHostAlloc(&buffers_[i], kChunkBytes, 0);
    if (status_ != CUDA_SUCCESS) return;
    status_ = environment.driver->cuEventCreate(&done_[i], CU_EVENT_DISABLE_TIMING);
  }
}

ChunkedCopy::~ChunkedCopy() {
  if (stream_.status() == CUDA_SUCCESS) (void)stream_.Wait();
  for (int i = 0; i < kBuffers; ++i) {
    if (done_[i] != nullptr) environment_.driver->cuEventDestroy_v2(done_[i]);
    if (buffers_[i] != nullptr) environment_.driver->cuMemFreeHost(buffers_[i]);
  }
}

CUresult ChunkedCopy::WaitFor(CUevent event) {
  for (;;) {
    const CUresult result = environment_.driver->cuEventQuery(event);
    if (result != CUDA_ERROR_NOT_READY) return result;
    absl::SleepFor(kStep);
  }
}

// The device fills one buffer while the other is emptied.
CUresult ChunkedCopy::Out(CUdeviceptr from, uint64_t bytes, std::byte* to) {
  if (status_ != CUDA_SUCCESS) return status_;
  const ipc::DriverTable& driver = *environment_.driver;
  const uint64_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  for (uint64_t chunk = 0; chunk <= chunks; ++chunk) {
    if (chunk < chunks) {
      const uint64_t at = chunk * kChunkBytes;
      CUresult result = driver.cuMemcpyDtoHAsync_v2(
          buffers_[chunk % kBuffers], from + at, std::min(kChunkBytes, bytes - at), stream_.get());
      if (result == CUDA_SUCCESS) {
        result = driver.cuEventRecord(done_[chunk % kBuffers], stream_.get());
      }
      if (result != CUDA_SUCCESS) return result;
    }
    if (chunk == 0) continue;
    const uint64_t at = (chunk - 1) * kChunkBytes;
    const CUresult result = WaitFor(done_[(chunk - 1) % kBuffers]);
    if (result != CUDA_SUCCESS) return result;
    std::memcpy(to + at, buffers_[(chunk - 1) % kBuffers], std::min(kChunkBytes, bytes - at));
  }
  return CUDA_SUCCESS;
}

CUresult ChunkedCopy::In(const std::byte* from, uint64_t bytes, CUdeviceptr to) {
  if (status_ != CUDA_SUCCESS) return status_;
  const ipc::DriverTable& driver = *environment_.driver;
  uint64_t chunk = 0;
  for (uint64_t at = 0; at < bytes; at += kChunkBytes, ++chunk) {
    const int buffer = static_cast<int>(chunk % kBuffers);
    CUresult result = chunk < kBuffers ? CUDA_SUCCESS : WaitFor(done_[buffer]);
    if (result != CUDA_SUCCESS) return result;
    const uint64_t n = std::min(kChunkBytes, bytes - at);
    std::memcpy(buffers_[buffer], from + at, n);
    result = driver.cuMemcpyHtoDAsync_v2(to + at, buffers_[buffer], n, stream_.get());
    if (result == CUDA_SUCCESS) result = driver.cuEventRecord(done_[buffer], stream_.get());
    if (result != CUDA_SUCCESS) return result;
  }
  return stream_.Wait();
}

}  // namespace worker
