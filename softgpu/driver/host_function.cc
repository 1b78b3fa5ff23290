#include "softgpu/driver/host_function.h"

#include "softgpu/driver/thread_state.h"

namespace softgpu {
namespace {

template <class Call>
void CallApplication(const Call& call) {
  ThreadState& thread = ThreadState::Get();
  thread.in_callback = true;
  call();
  thread.in_callback = false;
}

class HostFunctionOperation final : public Operation {
 public:
  HostFunctionOperation(CUhostFn function, void* data)
      : Operation(Place::kStreamThread), function_(function), data_(data) {}
  CUresult Run() override {
    CallApplication([&] { function_(data_); });
    return CUDA_SUCCESS;
  }

 private:
  const CUhostFn function_;
  void* const data_;
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
