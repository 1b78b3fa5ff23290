#include "softgpu/driver/launch.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "softgpu/driver/array.h"
#include "softgpu/driver/check_log.h"
#include "softgpu/driver/conditions.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/fault_record.h"
#include "softgpu/driver/function.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/virtual_device.h"

namespace softgpu {
namespace {

constexpr uint32_t kBlockThreadsMax = 1024, kBlockZMax = 64, kGridYZMax = 65535;
constexpr uint64_t kThreadsPerMultiprocessor = 2048, kBlocksPerMultiprocessorMax = 32;
constexpr uint64_t kSharedBytesPerMultiprocessor = 164 << 10, kSharedBytesReserved = 1 << 10;

std::atomic<uint64_t> next_grid{1};

void Report(const Fault& fault, CUstream stream) {
  ReportFault(fault.code, stream, fault.ToString());
  if (Driver::Get().config().check) CheckLog::Get().AddFault();
}

class LaunchOperation final : public Operation {
 public:
  explicit LaunchOperation(KernelWork work) : work_(std::move(work)) {
    launch_.kernel = &work_.function->kernel();
    launch_.grid = work_.grid;
    launch_.block = work_.block;
    launch_.dynamic_shared_bytes = work_.dynamic_shared_bytes;
    launch_.parameters = work_.parameters;
    launch_.variables = work_.module->addresses();
    launch_.memory = &Driver::Get().memory_map();
    launch_.objects.textures = &DriverTextures();
    launch_.objects.heap = work_.heap.get();
    launch_.objects.conditions = &DriverConditions();
    launch_.cancel = work_.context->cancel();
    launch_.sm_count = work_.context->device().config().sms;
    launch_.cooperative = work_.cooperative;
    const Config& config = Driver::Get().config();
    launch_.watchdog_ms = config.watchdog_ms;
    if (work_.timed) {
      timed = {scheduler::streams::TimedWork::Kind::kKernel, work_.timed->cost};
      skips_ = work_.timed->skips;
    }
    if (config.check) {
      launch_.report = [](const Finding& finding) { CheckLog::Get().Add(finding); };
    }
    launch_.print = [this](std::string_view text) {
      base::MutexLock lock(&print_mutex_);
      printed_.append(text);
    };
  }

  void SetStream(CUstream stream) override { stream_ = stream; }

  CUresult Run() override {
    if (skips_) return CUDA_SUCCESS;
    launch_.grid_id = next_grid.fetch_add(1);
    const std::optional<Fault> fault = Execute(launch_);
    HandOnPrints();
    if (!fault) return CUDA_SUCCESS;
    Report(*fault, stream_);
    return fault->code;
  }

 private:
  // Without the lock: the kernel has ended, and none of its threads prints any more.
  void HandOnPrints() NO_THREAD_SAFETY_ANALYSIS {
    if (!printed_.empty()) work_.context->Print(stream_, printed_);
    printed_.clear();
  }

  const KernelWork work_;
  Launch launch_;
  CUstream stream_ = nullptr;
  bool skips_ = false;
  base::Mutex print_mutex_;
  std::string printed_ GUARDED_BY(print_mutex_);
};

CUresult CheckShape(const Kernel& kernel, const LaunchRequest& request) {
  const Dim3 &grid = request.grid, &block = request.block;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "a dimension of the grid or the block is 0");
  }
  if (grid.x > 0x7fffffff || grid.y > kGridYZMax || grid.z > kGridYZMax) {
    return Fail(CUDA_ERROR_INVALID_VALUE,
                "the grid is larger than 2147483647 x 65535 x 65535 blocks");
  }
  if (block.x > kBlockThreadsMax || block.y > kBlockThreadsMax || block.z > kBlockZMax ||
      block.Count() > kBlockThreadsMax) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "a block has at most 1024 threads, and 64 in z");
  }
  const Dim3Triple required = kernel.required_block();
  if (required.x != 0 &&
      (block.x != required.x || block.y != required.y || block.z != required.z)) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the kernel requires another block size (.reqntid)");
  }
  if (block.Count() > kernel.threads_max()) {
    return Fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                "the block has more threads than the kernel allows (.maxntid)");
  }
  return CUDA_SUCCESS;
}

CUresult CheckResources(Function& function, const Device& device, const LaunchRequest& request) {
  const uint64_t shared_bytes =
      uint64_t{request.dynamic_shared_bytes} + function.kernel().static_shared_bytes();
  const bool opted_in =
      request.dynamic_shared_bytes <= function.attributes().dynamic_shared_bytes_max() &&
      shared_bytes <= KernelAttributes::kSharedBytesMax;
  if (shared_bytes > KernelAttributes::kDynamicSharedBytesDefault && !opted_in) {
    return Fail(CUDA_ERROR_INVALID_VALUE,
                "more than 48 KiB of shared memory need "
                "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, and 163 KiB are the most");
  }
  if (!request.cooperative) return CUDA_SUCCESS;
  const uint64_t resident =
      uint64_t{device.config().sms} *
      BlocksPerMultiprocessor(function, request.block.Count(), request.dynamic_shared_bytes);
  if (request.grid.Count() > resident) {
    return Fail(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                "a cooperative grid must fit onto the device at once: " + std::to_string(resident) +
                    " blocks of this shape");
  }
  return CUDA_SUCCESS;
}

// In virtual time nothing is guessed: the table has a rule for the kernel, or it cannot run.
CUresult FindTime(Function& function, const LaunchRequest& request,
                  std::optional<TimedKernel>* timed) {
  const VirtualDevice* const device = VirtualDevice::Get();
  if (device == nullptr) return CUDA_SUCCESS;
  const int blocks =
      BlocksPerMultiprocessor(function, request.block.Count(), request.dynamic_shared_bytes);
  *timed = device->table().TimeOf(function.kernel().name(), request.grid,
                                  static_cast<uint64_t>(std::max(blocks, 1)));
  if (timed->has_value()) return CUDA_SUCCESS;
  return Fail(CUDA_ERROR_INVALID_VALUE, "the table of LANEWAY_SOFTGPU's timing= has no rule for " +
                                            function.kernel().name() +
                                            ": add one for it, or for `* *`");
}

// The documented list of `extra`: (pointer, address), (size, address of size), end.
CUresult CopyExtra(void** extra, std::vector<std::byte>* parameters) {
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (void** item = extra; *item != CU_LAUNCH_PARAM_END; item += 2) {
    if (*item == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = item[1];
    } else if (*item == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const size_t*>(item[1]);
    } else {
      return Fail(CUDA_ERROR_INVALID_VALUE, "an item of `extra` is unknown");
    }
  }
  if (buffer == nullptr && bytes != 0)
    return Fail(CUDA_ERROR_INVALID_VALUE, "`extra` has no buffer");
  std::memcpy(parameters->data(), buffer, std::min(bytes, parameters->size()));
  return CUDA_SUCCESS;
}

CUresult CopyParameters(const Kernel& kernel, const LaunchRequest& request,
                        std::vector<std::byte>* parameters) {
  parameters->assign(kernel.param_bytes(), std::byte{0});
  if (request.extra != nullptr) {
    if (request.kernel_params != nullptr) {
      return Fail(CUDA_ERROR_INVALID_VALUE, "parameters are given twice: kernelParams and extra");
    }
    return CopyExtra(request.extra, parameters);
  }
  if (kernel.params().empty()) return CUDA_SUCCESS;
  if (request.kernel_params == nullptr) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the kernel has parameters and none are given");
  }
  for (size_t i = 0; i < kernel.params().size(); ++i) {
    const ParamInfo& param = kernel.params()[i];
    if (request.kernel_params[i] == nullptr) {
      return Fail(CUDA_ERROR_INVALID_VALUE, "parameter " + std::to_string(i) + " is null");
    }
    std::memcpy(parameters->data() + param.offset, request.kernel_params[i], param.bytes);
  }
  return CUDA_SUCCESS;
}

}  // namespace

int BlocksPerMultiprocessor(Function& function, uint64_t block_threads,
                            uint64_t dynamic_shared_bytes) {
  const Kernel& kernel = function.kernel();
  const uint64_t shared_bytes =
      kernel.static_shared_bytes() + dynamic_shared_bytes + kSharedBytesReserved;
  const uint64_t warps_threads = (block_threads + 31) / 32 * 32;
  if (block_threads == 0 || block_threads > kernel.threads_max()) return 0;
  return static_cast<int>(
      std::min({kBlocksPerMultiprocessorMax, kThreadsPerMultiprocessor / warps_threads,
                kSharedBytesPerMultiprocessor / shared_bytes}));
}

CUresult PrepareLaunch(const std::shared_ptr<Function>& function,
                       const std::shared_ptr<Context>& context, const LaunchRequest& request,
                       KernelWork* work) {
  work->module = function->module();
  if (work->module == nullptr)
    return Fail(CUDA_ERROR_INVALID_HANDLE, "the kernel's module is unloaded");
  if (work->module->context_id() != context->id()) {
    return Fail(CUDA_ERROR_INVALID_HANDLE, "the kernel belongs to another context");
  }
  CUresult result = CheckShape(function->kernel(), request);
  if (result != CUDA_SUCCESS) return result;
  result = CheckResources(*function, context->device(), request);
  if (result != CUDA_SUCCESS) return result;
  result = FindTime(*function, request, &work->timed);
  if (result != CUDA_SUCCESS) return result;
  if (function->kernel().uses_heap()) {
    work->heap = context->limits().Heap();
    if (work->heap == nullptr) {
      return Fail(CUDA_ERROR_OUT_OF_MEMORY,
                  "the heap of the kernel's malloc does not fit into device memory: make it "
                  "smaller (CU_LIMIT_MALLOC_HEAP_SIZE)");
    }
  }
  work->function = function;
  work->context = context;
  work->grid = request.grid;
  work->block = request.block;
  work->dynamic_shared_bytes = request.dynamic_shared_bytes;
  work->cooperative = request.cooperative;
  return CopyParameters(function->kernel(), request, &work->parameters);
}

std::unique_ptr<Operation> MakeLaunch(KernelWork work) {
  return std::make_unique<LaunchOperation>(std::move(work));
}

}  // namespace softgpu
