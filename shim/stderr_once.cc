#include "shim/stderr_once.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace shim {

void StderrOnce(std::atomic<bool>& said, std::initializer_list<std::string_view> parts) {
  if (said.exchange(true, std::memory_order_relaxed)) return;
  char line[2048];
  size_t used = 0;
  const auto append = [&](std::string_view text) {
    const size_t n = std::min(text.size(), sizeof line - 1 - used);
    std::memcpy(line + used, text.data(), n);
    used += n;
  };
  append("laneway: ");
  for (std::string_view part : parts) append(part);
  line[used++] = '\n';
  const int saved_errno = errno;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, used);
  errno = saved_errno;
}

CUresult FromStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return CUDA_SUCCESS;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return CUDA_ERROR_MPS_CONNECTION_FAILED;
    case absl::StatusCode::kPermissionDenied:
      return CUDA_ERROR_NOT_PERMITTED;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
      return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    case absl::StatusCode::kResourceExhausted:
      return CUDA_ERROR_OPERATING_SYSTEM;
    default:
      return CUDA_ERROR_MPS_RPC_FAILURE;
  }
}

}  // namespace shim
