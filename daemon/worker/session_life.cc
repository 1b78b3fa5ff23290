#include "daemon/worker/session_life.h"

namespace worker {

bool IsSticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
      return true;
    default:
      return false;
  }
}

void SessionLife::Lose(const char* text, CUresult code) {
  lost_.store(true, std::memory_order_relaxed);
  ipc::MarkLost(&page_, code, text);
}

// A client that gives up by itself writes the page alone. It can't take that back.
bool SessionLife::Alive() const {
  if (page_.loss.load(std::memory_order_relaxed) != 0) lost_.store(true, std::memory_order_relaxed);
  return !stop_.load(std::memory_order_acquire) && !lost_.load(std::memory_order_relaxed);
}

// Where no other worker was before, there is nothing to replay, whatever the page says.
void SessionLife::SetObstacle(ipc::Obstacle bit, bool is_there) {
  if (is_there) {
    page_.obstacles.fetch_or(bit);
  } else {
    page_.obstacles.fetch_and(~uint32_t{bit});
  }
}

bool SessionLife::Replays() const { return generation_ != 0 && page_.replaying.load() != 0; }

}  // namespace worker
