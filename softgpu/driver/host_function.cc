#include "softgpu/driver/host_function.h"

#include <string>

#include "ipc/calls/limits.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/extension.h"
#include "softgpu/driver/fault_record.h"
#include "softgpu/driver/thread_state.h"
#include "softgpu/exec/fault.h"

namespace softgpu {
namespace {

template <class Call>
void CallApplication(const Call& call) {
  ThreadState& thread = ThreadState::Get();
  thread.in_callback = true;
  call();
  thread.in_callback = false;
}

class HostFunctionOperation;
thread_local HostFunctionOperation* running = nullptr;  // on this thread

class HostFunctionOperation final : public Operation {
 public:
  HostFunctionOperation(CUhostFn function, void* data)
      : Operation(Place::kStreamThread), function_(function), data_(data) {}
  void SetStream(CUstream stream) override { stream_ = stream; }
  CUresult Run() override {
    fault_ = CUDA_SUCCESS;
    running = this;
    CallApplication([&] { function_(data_); });
    running = nullptr;
    if (fault_ != CUDA_SUCCESS) ReportFault(fault_, stream_, text_);
    return fault_;
  }
  // The first one counts.
  void Fault(CUresult code, const char* text) {
    if (fault_ != CUDA_SUCCESS) return;
    fault_ = code;
    text_ = text;
  }

 private:
  const CUhostFn function_;
  void* const data_;
  CUstream stream_ = nullptr;
  CUresult fault_ = CUDA_SUCCESS;
  std::string text_;
};

class CallbackOperation final : public Operation {
 public:
  CallbackOperation(CUstream stream, CUstreamCallback callback, void* data)
      : Operation(Place::kStreamThread), stream_(stream), callback_(callback), data_(data) {}
  CUresult Run() override {
    CallApplication([&] { callback_(stream_, CUDA_SUCCESS, data_); });
    return CUDA_SUCCESS;
  }
  void Skip(CUresult fault) override {
    CallApplication([&] { callback_(stream_, fault, data_); });
  }

 private:
  const CUstream stream_;
  const CUstreamCallback callback_;
  void* const data_;
};

}  // namespace

std::unique_ptr<Operation> MakeHostFunction(CUhostFn function, void* data) {
  return std::make_unique<HostFunctionOperation>(function, data);
}

std::unique_ptr<Operation> MakeCallback(CUstream stream, CUstreamCallback callback, void* data) {
  return std::make_unique<CallbackOperation>(stream, callback, data);
}

}  // namespace softgpu

// What no block holds may still be mapped, as a kernel that reads beyond a block finds: by pages.
extern "C" __attribute__((visibility("default"))) int softgpuHasMemory(CUdeviceptr address,
                                                                       size_t bytes) {
  if (softgpu::Driver::Get().memory_map().Covers(address, bytes)) return 1;
  namespace limits = ipc::limits;
  if (bytes == 0 || address < limits::kWindowBase || address >= limits::kWindowEnd ||
      bytes > limits::kWindowEnd - address) {
    return 0;
  }
  constexpr uint64_t kPage = 4096;
  const auto look = [first = address / kPage, last = (address + bytes - 1) / kPage] {
    for (uint64_t page = first; page <= last; ++page)
      static_cast<void>(*reinterpret_cast<const volatile char*>(page * kPage));
  };
  return softgpu::exec::FindPageFault(look).has_value() ? 0 : 1;
}

extern "C" __attribute__((visibility("default"))) CUresult softgpuRaiseFault(CUresult code,
                                                                             const char* text) {
  if (softgpu::running == nullptr) return CUDA_ERROR_NOT_PERMITTED;
  softgpu::running->Fault(code, text);
  return CUDA_SUCCESS;
}
