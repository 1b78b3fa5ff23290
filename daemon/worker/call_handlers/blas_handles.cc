#include "daemon/worker/call_handlers/blas_handles.h"

#include <utility>

#include "daemon/worker/graph_piece.h"
#include "daemon/worker/reaper.h"
#include "ipc/calls/limits.h"

namespace worker {

BlasHandles::BlasHandles(Holdings* held, CallContext* call, PersistentMemory* memory)
    : environment_(held->environment), held_(*held), call_(*call), memory_(*memory) {}

void BlasHandles::OnBind(cublasHandle_t handle) {
  StreamTable::Stream* const legacy = held_.streams.Legacy(call_.device);
  if (legacy == nullptr) return;
  State& state = states_[handle];
  state.stream = legacy->driver;
  environment_.cublas->cublasSetStream_v2(handle, legacy->driver);
  constexpr uint64_t kBytes = ipc::limits::kBlasWorkspaceBytes;
  const bool granted = memory_.AskForMemory(kBytes) == CUDA_SUCCESS;
  if (!granted || held_.arena.Place(call_.device, kBytes, &state.workspace) != CUDA_SUCCESS) {
    if (granted) memory_.GiveMemoryBack(kBytes);
    state.workspace = 0;  // a full device: the library then takes its own when it needs one
    return;
  }
  UseWorkspace(handle, state);
}

// cublasSetStream resets the workspace to the library's own; so it is set again each time.
void BlasHandles::UseWorkspace(cublasHandle_t handle, const State& state) {
  if (state.workspace == 0) return;
  environment_.cublas->cublasSetWorkspace_v2(handle, reinterpret_cast<void*>(state.workspace),
                                             ipc::limits::kBlasWorkspaceBytes);
}

void BlasHandles::OnRelease(cublasHandle_t handle) {
  const auto it = states_.find(handle);
  if (it == states_.end()) return;
  // A graph may use the workspace as long as the session lives.
  if (const CUdeviceptr workspace = it->second.workspace; workspace != 0 && !it->second.captured) {
    PersistentMemory* const memory = &memory_;
    held_.frees.Free(held_.streams.All(), [memory, workspace] { memory->FreeRange(workspace); });
  }
  states_.erase(it);
}

void BlasHandles::OnUse(cublasHandle_t handle) {
  const auto it = states_.find(handle);
  if (it == states_.end()) return;
  if (call_.capture != nullptr) return Capture(handle, &it->second);
  StreamTable::Stream* const stream = held_.streams.OfDriver(it->second.stream);
  if (stream == nullptr) return;
  held_.streams.Use(stream);
}

void BlasHandles::AfterSetStream() {
  const auto it = states_.find(call_.blas);
  if (it == states_.end() || call_.stream == nullptr) return;
  it->second.stream = call_.stream->driver;
  UseWorkspace(call_.blas, it->second);
}

void BlasHandles::Capture(cublasHandle_t handle, State* state) {
  state->captured = true;
  captured_ = handle;
  environment_.cublas->cublasSetStream_v2(handle, call_.capture->capture());
  UseWorkspace(handle, *state);
}

void BlasHandles::AfterCapturedCall() {
  const cublasHandle_t handle = std::exchange(captured_, nullptr);
  const auto it = states_.find(handle);
  if (it == states_.end()) return;
  environment_.cublas->cublasSetStream_v2(handle, it->second.stream);
  UseWorkspace(handle, it->second);
}

bool BlasHandles::UsePointerMode(ipc::HandleKind kind, void* driver_handle, bool device) {
  if (kind == ipc::HandleKind::kBlas) {
    const cublasHandle_t handle = static_cast<cublasHandle_t>(driver_handle);
    State& state = states_[handle];
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

void BlasHandles::Destroy(HandleMap* handles) {
  const Environment& environment = environment_;
  handles->Drain(ipc::HandleKind::kBlas, [&environment](void* handle) {
    const ipc::CublasTable& cublas = *environment.cublas;
    const cublasHandle_t ending = static_cast<cublasHandle_t>(handle);
    cublas.cublasSetStream_v2(ending, nullptr);  // the session's stream and workspace go before it
    Later(environment, [&cublas, ending] { cublas.cublasDestroy_v2(ending); });
  });
  states_.clear();
  const ipc::CublasLtTable* const lt = environment_.cublaslt;
  handles->Drain(ipc::HandleKind::kBlasLt, [lt](void* handle) {
    lt->cublasLtDestroy(static_cast<cublasLtHandle_t>(handle));
  });
  handles->Drain(ipc::HandleKind::kLtMatmulDesc, [lt](void* handle) {
    lt->cublasLtMatmulDescDestroy(static_cast<cublasLtMatmulDesc_t>(handle));
  });
  handles->Drain(ipc::HandleKind::kLtMatrixLayout, [lt](void* handle) {
    lt->cublasLtMatrixLayoutDestroy(static_cast<cublasLtMatrixLayout_t>(handle));
  });
  handles->Drain(ipc::HandleKind::kLtPreference, [lt](void* handle) {
    lt->cublasLtMatmulPreferenceDestroy(static_cast<cublasLtMatmulPreference_t>(handle));
  });
  handles->Drain(ipc::HandleKind::kLtTransformDesc, [lt](void* handle) {
    lt->cublasLtMatrixTransformDescDestroy(static_cast<cublasLtMatrixTransformDesc_t>(handle));
  });
}

}  // namespace worker
