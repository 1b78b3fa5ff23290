// What library handles need beyond the tables: the session's stream, a workspace from its arena,
// order.
#include "daemon/worker/reaper.h"
#include "daemon/worker/session_impl.h"
#include "ipc/calls/limits.h"

namespace worker {

// A new handle would use the context's default stream and workspace, which are everyone's.
void SessionImpl::SetUpBlas(cublasHandle_t handle) {
  StreamTable::Stream* const legacy = streams_.Legacy(device_);
  if (legacy == nullptr) return;
  BlasState& state = blas_[handle];
  state.stream = legacy->driver;
  environment_.cublas->cublasSetStream_v2(handle, legacy->driver);
  constexpr uint64_t kBytes = ipc::limits::kBlasWorkspaceBytes;
  const bool granted = AskForMemory(kBytes) == CUDA_SUCCESS;
  if (!granted || arena_.Place(device_, kBytes, &state.workspace) != CUDA_SUCCESS) {
    if (granted) GiveMemoryBack(kBytes);
    state.workspace = 0;  // a full device: the library then takes its own when it needs one
    return;
  }
  UseBlasWorkspace(handle, state);
}

// cublasSetStream resets the workspace to the library's own; so it is set again each time.
void SessionImpl::UseBlasWorkspace(cublasHandle_t handle, const BlasState& state) {
  if (state.workspace == 0) return;
  environment_.cublas->cublasSetWorkspace_v2(handle, reinterpret_cast<void*>(state.workspace),
                                             ipc::limits::kBlasWorkspaceBytes);
}

void SessionImpl::ForgetBlas(cublasHandle_t handle) {
  const auto it = blas_.find(handle);
  if (it == blas_.end()) return;
  // A graph may use the workspace as long as the session lives.
  if (const CUdeviceptr workspace = it->second.workspace; workspace != 0 && !it->second.captured) {
    frees_.Free(streams_.All(), [this, workspace] { FreeRange(workspace); });
  }
  blas_.erase(it);
}

void SessionImpl::AfterSetStream() {
  const auto it = blas_.find(call_blas_);
  if (it == blas_.end() || call_stream_ == nullptr) return;
  it->second.stream = call_stream_->driver;
  UseBlasWorkspace(call_blas_, it->second);
}

void SessionImpl::OrderBlasStream(cublasHandle_t handle) {
  call_blas_ = handle;
  const auto it = blas_.find(handle);
  if (it == blas_.end()) return;
  if (into_capture_) return CaptureBlas(handle, &it->second);
  StreamTable::Stream* const stream = streams_.OfDriver(it->second.stream);
  if (stream == nullptr) return;
  streams_.Use(stream);
}

bool SessionImpl::UsePointerMode(ipc::HandleKind kind, void* driver_handle, bool device) {
  if (kind == ipc::HandleKind::kBlas) {
    const cublasHandle_t handle = static_cast<cublasHandle_t>(driver_handle);
    BlasState& state = blas_[handle];
    if (state.device_scalars == device) return true;
    state.device_scalars = device;
    return environment_.cublas->cublasSetPointerMode_v2(
               handle, device ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST) ==
           CUBLAS_STATUS_SUCCESS;
  }
  const cublasLtPointerMode_t mode =
      device ? CUBLASLT_POINTER_MODE_DEVICE : CUBLASLT_POINTER_MODE_HOST;
  return environment_.cublaslt->cublasLtMatmulDescSetAttribute(
             static_cast<cublasLtMatmulDesc_t>(driver_handle), CUBLASLT_MATMUL_DESC_POINTER_MODE,
             &mode, sizeof mode) == CUBLAS_STATUS_SUCCESS;
}

void SessionImpl::DestroyLibraryObjects() {
  handles_.Drain(ipc::HandleKind::kBlas, [this](void* handle) {
    const ipc::CublasTable& cublas = *environment_.cublas;
    const cublasHandle_t ending = static_cast<cublasHandle_t>(handle);
    cublas.cublasSetStream_v2(ending, nullptr);  // the session's stream and workspace go before it
    Later(environment_, [&cublas, ending] { cublas.cublasDestroy_v2(ending); });
  });
  blas_.clear();
  handles_.Drain(ipc::HandleKind::kBlasLt, [this](void* handle) {
    environment_.cublaslt->cublasLtDestroy(static_cast<cublasLtHandle_t>(handle));
  });
  handles_.Drain(ipc::HandleKind::kLtMatmulDesc, [this](void* handle) {
    environment_.cublaslt->cublasLtMatmulDescDestroy(static_cast<cublasLtMatmulDesc_t>(handle));
  });
  handles_.Drain(ipc::HandleKind::kLtMatrixLayout, [this](void* handle) {
    environment_.cublaslt->cublasLtMatrixLayoutDestroy(static_cast<cublasLtMatrixLayout_t>(handle));
  });
  handles_.Drain(ipc::HandleKind::kLtPreference, [this](void* handle) {
    environment_.cublaslt->cublasLtMatmulPreferenceDestroy(
        static_cast<cublasLtMatmulPreference_t>(handle));
  });
  handles_.Drain(ipc::HandleKind::kLtTransformDesc, [this](void* handle) {
    environment_.cublaslt->cublasLtMatrixTransformDescDestroy(
        static_cast<cublasLtMatrixTransformDesc_t>(handle));
  });
}

}  // namespace worker
