#include "daemon/worker/devices.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/common/child_main.h"

namespace worker {
namespace {

constexpr std::chrono::milliseconds kWatchPeriod(100);

}  // namespace

Devices::~Devices() {
  {
    const base::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (watcher_.joinable()) watcher_.join();
}

absl::Status Devices::Open() {
  if (absl::Status started = common::StartDriver(driver_); !started.ok()) return started;
  int count = 0;
  const CUresult result = driver_.cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS || count == 0) {
    return absl::FailedPreconditionError("the driver has no device");
  }
  for (int i = 0; i < std::min<int>(count, ipc::control::kDevicesMax); ++i) {
    const absl::Status opened = OpenDevice(i);
    if (!opened.ok()) return opened;
  }
  if (driver_.cuLogsRegisterCallback != nullptr) {
    CUlogsCallbackHandle handle;
    driver_.cuLogsRegisterCallback(&Devices::OnLog, this, &handle);
  }
  return absl::OkStatus();
}

absl::Status Devices::OpenDevice(int ordinal) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream probe = nullptr;
  CUresult result = driver_.cuDeviceGet(&device, ordinal);
  if (result == CUDA_SUCCESS) result = driver_.cuDevicePrimaryCtxRetain(&context, device);
  if (result == CUDA_SUCCESS) result = driver_.cuCtxPushCurrent_v2(context);
  if (result == CUDA_SUCCESS) {
    result = driver_.cuStreamCreate(&probe, CU_STREAM_NON_BLOCKING);
    CUcontext popped = nullptr;
    driver_.cuCtxPopCurrent_v2(&popped);
  }
  if (result != CUDA_SUCCESS) {
    return absl::FailedPreconditionError(
        absl::StrCat("device ", ordinal, " gives no context: ", common::ErrorName(driver_, result),
                     "; is it in exclusive mode or full? see nvidia-smi"));
  }
  contexts_.push_back(context);
  probes_.push_back(probe);
  return absl::OkStatus();
}

void Devices::Watch(OnFault on_fault) {
  watcher_ = std::thread(&Devices::WatchLoop, this, std::move(on_fault));
}

void Devices::SetNeeded(bool needed) {
  {
    const base::MutexLock lock(&mutex_);
    needed_ = needed;
  }
  changed_.NotifyAll();
}

CUresult Devices::Health() {
  for (size_t i = 0; i < contexts_.size(); ++i) {
    CUresult result = driver_.cuCtxPushCurrent_v2(contexts_[i]);
    if (result != CUDA_SUCCESS) return result;
    result = driver_.cuStreamQuery(probes_[i]);
    CUcontext popped = nullptr;
    driver_.cuCtxPopCurrent_v2(&popped);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) return result;
  }
  return CUDA_SUCCESS;
}

bool Devices::AwaitLook() {
  const std::chrono::steady_clock::time_point next =
      std::chrono::steady_clock::now() + kWatchPeriod;
  const base::MutexLock lock(&mutex_);
  while (!stopping_ && !needed_) changed_.Wait(&mutex_);
  while (!stopping_ && changed_.WaitUntil(&mutex_, next)) {
  }
  return !stopping_;
}

void Devices::WatchLoop(OnFault on_fault) {
  while (AwaitLook()) {
    const CUresult health = Health();
    if (health == CUDA_SUCCESS) continue;
    on_fault(health);
    return;
  }
}

void Devices::OnLog(void* self, CUlogLevel level, char* message, size_t length) {
  Devices* const devices = static_cast<Devices*>(self);
  const std::string text(message, length);
  common::Log("driver", text);
  if (level != CU_LOG_LEVEL_ERROR) return;
  const base::MutexLock lock(&devices->mutex_);
  devices->fault_text_ = text;
}

void Devices::RoutePrints(StreamOwners* owners) {
  if (driver_.softgpuSetPrintHandler == nullptr)
    return;  // a GPU's printf goes to the worker's own output
  driver_.softgpuSetPrintHandler(
      [](CUstream stream, const char* text, size_t bytes, void* data) {
        static_cast<StreamOwners*>(data)->Print(stream, {text, bytes});
      },
      owners);
}

std::string Devices::FaultText(CUstream* stream) const {
  *stream = nullptr;
  const char* text = nullptr;
  if (driver_.softgpuGetFault != nullptr &&
      driver_.softgpuGetFault(stream, &text) != CUDA_SUCCESS) {
    return text;
  }
  const base::MutexLock lock(&mutex_);
  return fault_text_;
}

}  // namespace worker
