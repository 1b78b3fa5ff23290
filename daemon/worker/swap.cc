#include "daemon/worker/swap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/worker/poll_device.h"
#include "daemon/worker/reaper.h"
#include "ipc/driver_table.h"

namespace worker {

SwapSpace::SwapSpace(int64_t limit_bytes)
    : limit_bytes_(
          static_cast<uint64_t>(limit_bytes < 0 ? common::DefaultSwapBytes() : limit_bytes)) {}

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

// --- the file ------------------------------------------------------------------------------------

namespace {

using common::kSwapOffset;
using common::SwapRecord;

constexpr uint64_t kPageBytes = 4096;

// From the records on: where the bytes of the first of `count` begin.
uint64_t DataOffset(size_t count) {
  return (count * sizeof(SwapRecord) + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

absl::Status SwapFile::Begin(SwapSpace* space, std::vector<SwapRecord> records) {
  assert(records_.empty() && !records.empty());
  records_ = std::move(records);
  absl::Status status = space->Take(bytes());
  if (status.ok()) {
    space_ = space;
    status = Map();
  }
  if (!status.ok()) {
    Clear();
    return status;
  }
  std::memcpy(base_, records_.data(), records_.size() * sizeof(SwapRecord));
  return status;
}

// Takes all pages now, including the page of the count: when the host has no memory this fails, and
// no later write does.
absl::Status SwapFile::Map() {
  if (!fd_.valid()) fd_ = ipc::UniqueFd(memfd_create("laneway-swap", MFD_CLOEXEC));
  const uint64_t size = DataOffset(records_.size()) + bytes();
  if (fallocate(fd_.get(), 0, 0, sizeof(uint64_t)) == 0 &&
      fallocate(fd_.get(), 0, kSwapOffset, static_cast<off_t>(size)) == 0) {
    void* const base =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), kSwapOffset);
    if (base != MAP_FAILED) {
      base_ = static_cast<std::byte*>(base);
      mapped_bytes_ = size;
      return absl::OkStatus();
    }
  }
  return absl::ResourceExhaustedError(absl::StrCat("the host has no ", bytes(),
                                                   " bytes to swap into: ", std::strerror(errno),
                                                   "; lower --swap or end a program"));
}

void SwapFile::Commit() {
  Publish(records_.size());
  committed_ = true;
}

// One store by the kernel: a reader sees it or not.
void SwapFile::Publish(uint64_t count) {
  const ssize_t written = pwrite(fd_.get(), &count, sizeof count, 0);
  assert(written == sizeof count);
  static_cast<void>(written);
}

std::byte* SwapFile::BytesOf(size_t record) const {
  uint64_t offset = DataOffset(records_.size());
  for (size_t i = 0; i < record; ++i) offset += records_[i].bytes;
  return base_ + offset;
}

uint64_t SwapFile::bytes() const {
  uint64_t bytes = 0;
  for (const SwapRecord& record : records_) bytes += record.bytes;
  return bytes;
}

void SwapFile::Clear() {
  if (base_ != nullptr) Publish(0);
  Forget();
  if (fd_.valid() && ftruncate(fd_.get(), kSwapOffset) != 0) assert(false);  // the file has no seal
}

absl::Status SwapFile::Open(SwapSpace* space) {
  assert(records_.empty());
  uint64_t count = 0;
  if (!fd_.valid() || pread(fd_.get(), &count, sizeof count, 0) != sizeof count || count == 0)
    return absl::OkStatus();
  records_.resize(count);
  const size_t size = count * sizeof(SwapRecord);
  const ssize_t got = pread(fd_.get(), records_.data(), size, kSwapOffset);
  if (got != static_cast<ssize_t>(size)) return absl::DataLossError("a swap file is cut off");
  space->Force(bytes());
  space_ = space;
  const absl::Status mapped = Map();
  committed_ = mapped.ok();
  return mapped;
}

void SwapFile::Leave() {
  Forget();
  fd_.Reset();
}

void SwapFile::Forget() {
  if (base_ != nullptr) munmap(std::exchange(base_, nullptr), mapped_bytes_);
  if (space_ != nullptr) std::exchange(space_, nullptr)->Give(bytes());
  records_.clear();
  committed_ = false;
}

// --- copies --------------------------------------------------------------------------------------

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
    if (buffers_[i] == nullptr) continue;
    Later(environment_,
          [driver = environment_.driver, buffer = buffers_[i]] { driver->cuMemFreeHost(buffer); });
  }
}

CUresult ChunkedCopy::WaitFor(CUevent event) {
  CUresult result = CUDA_SUCCESS;
  PollDevice([&] {
    result = environment_.driver->cuEventQuery(event);
    return result != CUDA_ERROR_NOT_READY;
  });
  return result;
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
