// cuBLAS handles: what getters answer and what encoding needs is kept here; the rest is the
// worker's.
#include <cstdio>

#include "shim/blas_calls.h"
#include "shim/client.h"
#include "shim/cublas/local.h"
#include "shim/results.h"
#include "shim/send.h"
#include "shim/streams.h"

namespace local {
namespace {

using shim::BlasHandle;
using shim::BlasState;
using shim::Context;
using shim::Streams;

BlasHandle* Find(cublasHandle_t handle) {
  if (shim::Client::Process().Ready() != CUDA_SUCCESS) return nullptr;
  return BlasState::Process().handles.Find(reinterpret_cast<uint64_t>(handle));
}

}  // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  Context* context = nullptr;
  uint64_t context_value = 0;
  if (shim::BlasContext(&context, &context_value) != CUDA_SUCCESS)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  // Without pinned memory only the calls that return to the host fail, each by itself.
  shim::HostResults::Prepare(*context, context_value);
  uint64_t value = 0;
  BlasHandle* const made = BlasState::Process().handles.Create(&value);
  if (made == nullptr) return CUBLAS_STATUS_ALLOC_FAILED;
  made->wire = context->wire;
  made->device = context->device;
  const shim::GivenName name(value);
  const ipc::Arguments<ipc::Op::cublasCreate_v2> arguments(handle);
  return static_cast<cublasStatus_t>(
      shim::CallValues(ipc::Op::cublasCreate_v2, context->wire, arguments.values()));
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  const BlasHandle* const found = Find(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (found->lt != nullptr) {
    const ipc::Arguments<ipc::Op::cublasLtDestroy> lt(found->lt);
    shim::PostValues(ipc::Op::cublasLtDestroy, found->wire, lt.values());
  }
  const ipc::Arguments<ipc::Op::cublasDestroy_v2> arguments(handle);
  return static_cast<cublasStatus_t>(
      shim::PostValues(ipc::Op::cublasDestroy_v2, found->wire, arguments.values()));
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t program) {
  BlasHandle* const found = Find(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  shim::Stream* stream = nullptr;
  if (Streams::Process().UseCurrent(program, &stream) != CUDA_SUCCESS)
    return CUBLAS_STATUS_INVALID_VALUE;
  const CUstream named = reinterpret_cast<CUstream>(stream->value);
  const ipc::Arguments<ipc::Op::cublasSetStream_v2> arguments(handle, named);
  const uint32_t status =
      shim::PostValues(ipc::Op::cublasSetStream_v2, found->wire, arguments.values());
  if (status == 0) {
    found->stream = named;
    found->program_stream = program;
  }
  return static_cast<cublasStatus_t>(status);
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  const BlasHandle* const found = Find(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *stream = found->program_stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  BlasHandle* const found = Find(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE)
    return CUBLAS_STATUS_INVALID_VALUE;
  found->pointer_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  const BlasHandle* const found = Find(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (mode == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *mode = found->pointer_mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  const BlasHandle* const found = Find(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const ipc::Arguments<ipc::Op::cublasSetWorkspace_v2> arguments(handle, workspace, bytes);
  return static_cast<cublasStatus_t>(
      shim::PostValues(ipc::Op::cublasSetWorkspace_v2, found->wire, arguments.values()));
}

// The version of the headers that this facade is made of.
size_t cublasGetCudartVersion() { return CUDA_VERSION; }

const char* cublasGetStatusName(cublasStatus_t status) { return shim::BlasStatusName(status); }
const char* cublasGetStatusString(cublasStatus_t status) { return shim::BlasStatusText(status); }

void cublasXerbla(const char* routine, int parameter) {
  std::fprintf(stderr, "laneway: parameter %d of %s is not valid\n", parameter, routine);
}

}  // namespace local
