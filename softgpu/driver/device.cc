#include "softgpu/driver/device.h"

#include <cstdio>
#include <cstring>
#include <utility>

#include "base/mutex.h"
#include "ipc/calls/limits.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/memory_pool.h"

namespace softgpu {
namespace {

// A device's part of the window: device memory first, pinned host memory in the last quarter.
constexpr uint64_t kHostBytes = ipc::limits::kSoftDeviceBytes / 4;
constexpr uint64_t kDeviceBytes = ipc::limits::kSoftDeviceBytes - kHostBytes;

uint64_t BaseOf(int ordinal) {
  return ipc::limits::kSlotsEnd + ordinal * ipc::limits::kSoftDeviceBytes;
}

}  // namespace

Device::Device(int ordinal, const Config& config)
    : ordinal_(ordinal),
      config_(config),
      memory_(config.memory_bytes),
      heap_(BaseOf(ordinal), kDeviceBytes),
      host_heap_(BaseOf(ordinal) + kDeviceBytes, kHostBytes),
      default_pool_(std::make_shared<MemoryPool>(this)),
      current_pool_(default_pool_) {}

Device::~Device() = default;

CUuuid Device::Uuid() const {
  CUuuid uuid;
  static_assert(sizeof uuid.bytes == 16);
  std::memcpy(uuid.bytes, "softgpu-device-", 15);
  uuid.bytes[15] = static_cast<char>('0' + ordinal_);
  return uuid;
}

std::string Device::PciBusId() const {
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", ordinal_ + 1);
  return text;
}

std::shared_ptr<Context> Device::RetainPrimary() {
  base::MutexLock lock(&mutex_);
  if (primary_ == nullptr) primary_ = Context::Create(this, primary_flags_, true);
  ++primary_references_;
  return primary_;
}

CUresult Device::ReleasePrimary() {
  std::shared_ptr<Context> last;
  {
    base::MutexLock lock(&mutex_);
    if (primary_references_ == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary_references_ == 0) last = std::exchange(primary_, nullptr);
  }
  if (last != nullptr) last->Destroy();
  return CUDA_SUCCESS;
}

void Device::ResetPrimary() {
  std::shared_ptr<Context> last;
  {
    base::MutexLock lock(&mutex_);
    primary_references_ = 0;
    last = std::exchange(primary_, nullptr);
  }
  if (last != nullptr) last->Destroy();
}

CUresult Device::SetPrimaryFlags(unsigned flags) {
  base::MutexLock lock(&mutex_);
  primary_flags_ = flags;
  if (primary_ != nullptr) primary_->set_flags(flags);
  return CUDA_SUCCESS;
}

void Device::PrimaryState(unsigned* flags, int* active) {
  base::MutexLock lock(&mutex_);
  *flags = primary_flags_;
  *active = primary_ != nullptr ? 1 : 0;
}

std::shared_ptr<MemoryPool> Device::current_pool() {
  base::MutexLock lock(&mutex_);
  return current_pool_;
}

void Device::SetCurrentPool(std::shared_ptr<MemoryPool> pool) {
  base::MutexLock lock(&mutex_);
  current_pool_ = std::move(pool);
}

}  // namespace softgpu
