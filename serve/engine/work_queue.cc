#include "serve/engine/work_queue.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace serve::engine {

WorkQueue::~WorkQueue() {
  for (const CUdeviceptr address : memory_)
    device_->cuda().cuMemFreeAsync(address, device_->stream());
}

void WorkQueue::LaunchKernel(std::string_view kernel, const unsigned (&grid)[3],
                             const unsigned (&block)[3], void* arguments) {
  if (!status_.ok()) return;
  const absl::StatusOr<CUfunction> function = device_->FindKernel(kernel);
  if (!function.ok()) {
    status_ = function.status();
    return;
  }
  void* parameters[] = {arguments};
  Note(device_->cuda().cuLaunchKernel(*function, grid[0], grid[1], grid[2], block[0], block[1],
                                      block[2], 0, device_->stream(), parameters, nullptr),
       "launching a kernel");
}

void WorkQueue::Multiply(const Product& product, const GemmWidth& width) {
  if (!status_.ok() || product.columns == 0) return;
  constexpr float kOne = 1;
  constexpr float kZero = 0;
  const auto& [weights, out, in, x, y, columns] = product;
  const int32_t step = width.OfCall(columns);
  // To cuBLAS, which counts by columns, the weights are [in, out], x and y [in or out, columns].
  // Calls of a fixed width are a batch that shares the weights.
  const cublasStatus_t status =
      step == columns
          ? device_->cuda().cublasSgemm_v2(device_->blas(), CUBLAS_OP_T, CUBLAS_OP_N, out, step, in,
                                           &kOne, weights, in, x, in, &kZero, y, out)
          : device_->cuda().cublasSgemmStridedBatched(
                device_->blas(), CUBLAS_OP_T, CUBLAS_OP_N, out, step, in, &kOne, weights, in, 0, x,
                in, static_cast<int64_t>(step) * in, &kZero, y, out,
                static_cast<int64_t>(step) * out, columns / step);
  Note(status, "multiplying matrices");
}

void WorkQueue::Place(CUdeviceptr to, const void* from, size_t bytes) {
  if (!status_.ok() || bytes == 0) return;
  if (bytes > staging_.size()) {
    CopyIn(to, from, bytes);
    Note(device_->cuda().cuStreamSynchronize(device_->stream()), "copying to the device");
    return;
  }
  std::memcpy(staging_.data(), from, bytes);
  CopyIn(to, staging_.data(), bytes);
  staging_ = staging_.subspan(bytes);
}

void WorkQueue::CopyIn(CUdeviceptr to, const void* from, size_t bytes) {
  if (!status_.ok() || bytes == 0) return;
  Note(device_->cuda().cuMemcpyHtoDAsync_v2(to, from, bytes, device_->stream()),
       "copying to the device");
}

void WorkQueue::CopyOut(void* to, CUdeviceptr from, size_t bytes) {
  if (!status_.ok() || bytes == 0) return;
  Note(device_->cuda().cuMemcpyDtoHAsync_v2(to, from, bytes, device_->stream()),
       "copying from the device");
}

void WorkQueue::Zero(CUdeviceptr at, size_t bytes) {
  if (!status_.ok() || bytes == 0) return;
  Note(device_->cuda().cuMemsetD8Async(at, 0, bytes, device_->stream()), "clearing memory");
}

CUdeviceptr WorkQueue::Allocate(size_t bytes) {
  if (!status_.ok()) return 0;
  CUdeviceptr address = 0;
  Note(device_->cuda().cuMemAllocAsync(&address, bytes, device_->stream()),
       absl::StrCat("allocating ", bytes, " bytes for a step"));
  if (!status_.ok()) return 0;
  memory_.push_back(address);
  return address;
}

absl::Status WorkQueue::Submit(Event* done) {
  if (status_.ok()) status_ = done->Record();
  return status_.ok() ? status_ : Finish();
}

absl::Status WorkQueue::Finish() {
  // Also after a failure: the host's bytes of copies that were submitted may go then.
  Note(device_->cuda().cuStreamSynchronize(device_->stream()), "computing");
  return status_;
}

}  // namespace serve::engine
