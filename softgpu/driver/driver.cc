#include "softgpu/driver/driver.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cassert>
#include <cstdlib>
#include <string>

#include "base/mutex.h"
#include "ipc/calls/limits.h"
#include "softgpu/driver/array.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/extent_handle.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_exec.h"
#include "softgpu/driver/library.h"
#include "softgpu/driver/linker.h"
#include "softgpu/driver/memory_pool.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/virtual_device.h"
#include "softgpu/exec/fault.h"
#include "softgpu/jit/compiler.h"

namespace softgpu {
namespace {

std::atomic<Driver*> instance{nullptr};
std::atomic<bool> forked{false};

void AfterForkInChild() {
  if (instance.load() != nullptr) forked = true;
}

CUresult SayOnce(CUresult code, const std::string& sentence) {
  static std::atomic<bool> said{false};
  return FailAloud(code, sentence, &said);
}

void UseExecutor(const Config& config) {
  const jit::Executor executor =
      config.executor == Config::Executor::kInterpreter ? jit::Executor::kInterpreter
      : config.executor == Config::Executor::kLlvm      ? jit::Executor::kLlvm
                                                        : jit::Executor::kAuto;
  jit::UseExecutor(executor, config.cache);
}

}  // namespace

bool Driver::Ready() { return instance.load() != nullptr && !forked.load(); }

bool Driver::Forked() { return forked.load(); }

Driver& Driver::Get() {
  Driver* const driver = instance.load();
  assert(driver != nullptr);
  return *driver;
}

Driver::Driver(const Config& config) : config_(config) {
  if (config.check) memory_map_.KeepSites();
}

CUresult Driver::Init() {
  static base::Mutex* const mutex = new base::Mutex;
  if (Forked())
    return Fail(CUDA_ERROR_NOT_INITIALIZED, "a forked child can't use its parent's driver");
  base::MutexLock lock(mutex);
  if (instance.load() != nullptr) return CUDA_SUCCESS;
  const char* const text = std::getenv(kConfigVariable);
  std::string error;
  const std::optional<Config> config = ParseConfig(text != nullptr ? text : "", &error);
  if (!config) return SayOnce(CUDA_ERROR_INVALID_VALUE, error);
  if (!config->timing.empty() && !VirtualDevice::Open(config->timing, &error))
    return SayOnce(CUDA_ERROR_INVALID_VALUE, error);
  UseExecutor(*config);
  std::unique_ptr<Driver> driver(new Driver(*config));
  const CUresult started = driver->Start();
  if (started != CUDA_SUCCESS) return started;
  pthread_atfork(nullptr, nullptr, &AfterForkInChild);
  Driver* const ready = driver.release();
  instance = ready;
  for (const std::unique_ptr<Device>& device : ready->devices_) {
    ready->pools.Add(device->default_pool());
  }
  return CUDA_SUCCESS;
}

CUresult Driver::Start() {
  const uint64_t bytes = config_.devices * ipc::limits::kSoftDeviceBytes;
  void* const base = reinterpret_cast<void*>(ipc::limits::kSlotsEnd);
  void* const result =
      mmap(base, bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (result != base) {
    if (result != MAP_FAILED) munmap(result, bytes);
    return SayOnce(
        CUDA_ERROR_OUT_OF_MEMORY,
        "the address range of the software GPU is taken or may not be reserved (see ulimit -v)");
  }
  for (unsigned i = 0; i < config_.devices; ++i) {
    devices_.push_back(std::make_unique<Device>(static_cast<int>(i), config_));
  }
  virtual_memory_ = std::make_unique<VirtualMemory>(&devices_[0]->heap(), &memory_map_);
  exec::InstallFaultHandler();  // for copies; before a kernel runs it is looked after again
  return CUDA_SUCCESS;
}

Device* Driver::device(int ordinal) {
  if (ordinal < 0 || ordinal >= device_count()) return nullptr;
  return devices_[ordinal].get();
}

CUresult Driver::StickyError() const {
  const CUresult fault = process_fault_.load();
  if (fault != CUDA_SUCCESS || !config_.sticky_context) return fault;
  const std::shared_ptr<Context> context = Context::Current();
  return context != nullptr ? context->Fault() : CUDA_SUCCESS;
}

void Driver::RaiseFault(CUresult code) {
  if (config_.sticky_context) return;
  CUresult none = CUDA_SUCCESS;
  process_fault_.compare_exchange_strong(none, code);
}

void Driver::ForgetContext(Context& context) {
  for (const std::shared_ptr<Module>& module : modules.All()) {
    if (module->context_id() == context.id()) module->Unload();
  }
  for (const std::shared_ptr<Library>& library : libraries.All())
    library->ForgetContext(context.id());
  for (const std::shared_ptr<Array>& array : arrays.All()) {
    if (array->context_id() == context.id()) arrays.Remove(array.get());
  }
  memory_map_.RemoveContext(context.id());
  contexts.Remove(&context);
}

namespace {

// Installed before cuInit too, so it lives outside the driver.
struct PrintHandler {
  base::Mutex mutex;
  SoftgpuPrintHandler handler GUARDED_BY(mutex) = nullptr;
  void* data GUARDED_BY(mutex) = nullptr;
};

PrintHandler& Handler() {
  static PrintHandler* const handler = new PrintHandler;
  return *handler;
}

}  // namespace

void Driver::SetPrintHandler(SoftgpuPrintHandler handler, void* data) {
  base::MutexLock lock(&Handler().mutex);
  Handler().handler = handler;
  Handler().data = data;
}

bool Driver::PrintToHandler(CUstream stream, std::string_view text) {
  base::MutexLock lock(&Handler().mutex);
  if (Handler().handler == nullptr) return false;
  Handler().handler(stream, text.data(), text.size(), Handler().data);
  return true;
}

}  // namespace softgpu

extern "C" __attribute__((visibility("default"))) CUresult softgpuSetPrintHandler(
    SoftgpuPrintHandler handler, void* data) {
  softgpu::Driver::SetPrintHandler(handler, data);
  return CUDA_SUCCESS;
}
