// What the pretended worker makes of copies: it makes them at once.
#include <cstring>

#include "tests/shim/fake_worker.h"

namespace shim_test {
namespace {

void CopyRows(std::byte* to, size_t to_pitch, const std::byte* from, size_t from_pitch,
              size_t width, size_t height) {
  for (size_t row = 0; row < height; ++row)
    std::memcpy(to + row * to_pitch, from + row * from_pitch, width);
}

}  // namespace

CUresult FakeWorker::CopyInline(CUdeviceptr to, const void* bytes, size_t count, CUstream) {
  std::memcpy(Shadow(to), bytes, count);
  return CUDA_SUCCESS;
}
CUresult FakeWorker::CopyStagedIn(CUdeviceptr to, uint64_t offset, size_t count, CUstream stream,
                                  ipc::Mark mark) {
  std::memcpy(Shadow(to), file_->staging() + offset, count);
  return Place(stream, mark);
}
CUresult FakeWorker::CopyStagedOut(uint64_t offset, CUdeviceptr from, size_t count, CUstream stream,
                                   ipc::Mark mark) {
  std::memcpy(file_->staging() + offset, Shadow(from), count);
  return Place(stream, mark);
}
CUresult FakeWorker::FetchAhead(uint64_t offset, CUdeviceptr from, size_t count, CUstream stream,
                                ipc::Mark mark, uint64_t ticket) {
  if (Fault("FetchAhead") == CUDA_SUCCESS) {
    std::memcpy(file_->staging() + offset, Shadow(from), count);
    page()->fetched.store(ticket);
  }
  return Place(stream, mark);
}
CUresult FakeWorker::CopyDevice(CUdeviceptr to, CUdeviceptr from, size_t count, CUstream stream,
                                ipc::Mark mark) {
  const auto bytes_of = [&](CUdeviceptr address) {
    const bool pinned = address - arena_base_ >= ipc::limits::kDeviceArenaBytes;
    return pinned ? reinterpret_cast<std::byte*>(address) : Shadow(address);
  };
  std::memmove(bytes_of(to), bytes_of(from), count);
  return Place(stream, mark);
}
CUresult FakeWorker::CopyPitched(CUdeviceptr to, size_t to_pitch, CUdeviceptr from,
                                 size_t from_pitch, size_t width, size_t height, CUstream stream,
                                 ipc::Mark mark) {
  for (size_t row = 0; row < height; ++row) {
    CopyDevice(to + row * to_pitch, from + row * from_pitch, width, stream, {});
  }
  return Place(stream, mark);
}
CUresult FakeWorker::CopyPitchedStagedIn(CUdeviceptr to, size_t to_pitch, uint64_t offset,
                                         size_t width, size_t height, CUstream stream,
                                         ipc::Mark mark) {
  CopyRows(Shadow(to), to_pitch, file_->staging() + offset, width, width, height);
  return Place(stream, mark);
}
CUresult FakeWorker::CopyPitchedStagedOut(uint64_t offset, CUdeviceptr from, size_t from_pitch,
                                          size_t width, size_t height, CUstream stream,
                                          ipc::Mark mark) {
  CopyRows(file_->staging() + offset, width, Shadow(from), from_pitch, width, height);
  return Place(stream, mark);
}

}  // namespace shim_test
