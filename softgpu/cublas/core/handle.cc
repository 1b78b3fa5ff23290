#include "softgpu/cublas/core/handle.h"

namespace softgpu::cublas {

cublasStatus_t Handle::Create(Handle** handle) {
  const Driver* const driver = Driver::Get();
  if (driver == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const cublasStatus_t status = driver->EnsureContext();
  if (status != CUBLAS_STATUS_SUCCESS) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new Handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t Handle::Destroy(Handle* handle) {
  handle->state = 0;  // queued work doesn't use the handle, so nothing has to be waited for
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t Handle::SubmitForResult(std::function<void()> work) const {
  const cublasStatus_t status = Submit(std::move(work));
  if (status != CUBLAS_STATUS_SUCCESS || device_pointers()) return status;
  return StatusOf(Driver::Get()->cuStreamSynchronize(stream));
}

}  // namespace softgpu::cublas
