// cublasLt objects whose state encoding needs, and what has no wire form.
#include <cstring>

#include "shim/blas_calls.h"
#include "shim/cublas/local.h"
#include "shim/send.h"
#include "shim/stderr_once.h"

namespace local {
namespace {

using shim::BlasState;
using shim::Context;
using shim::LtMatmulDesc;

std::atomic<bool> said_in_place;

cublasStatus_t CurrentWire(uint32_t* wire) {
  Context* context = nullptr;
  uint64_t value = 0;
  const CUresult result = shim::BlasContext(&context, &value);
  if (result == CUDA_SUCCESS) *wire = context->wire;
  return shim::StatusOf(result);
}

template <ipc::Op op, class... A>
cublasStatus_t Send(bool wait, A... args) {
  uint32_t wire = 0;
  if (const cublasStatus_t status = CurrentWire(&wire); status != CUBLAS_STATUS_SUCCESS)
    return status;
  const ipc::Arguments<op> arguments(args...);
  return static_cast<cublasStatus_t>(wait ? shim::CallValues(op, wire, arguments.values())
                                          : shim::PostValues(op, wire, arguments.values()));
}

LtMatmulDesc* FindDesc(cublasLtMatmulDesc_t desc) {
  return BlasState::Process().matmul_descs.Find(reinterpret_cast<uint64_t>(desc));
}

// An object in the program's own memory has no name that a call could carry.
cublasStatus_t RefuseInPlace() {
  shim::StderrOnce(said_in_place,
                   {"cublasLt objects made in place (cublasLtMatmulDescInit and its kin) are not "
                    "supported; make them with the Create functions"});
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return handle == nullptr ? CUBLAS_STATUS_INVALID_VALUE
                           : Send<ipc::Op::cublasLtCreate>(true, handle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return Send<ipc::Op::cublasLtDestroy>(false, handle);
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion() { return CUDA_VERSION; }
const char* cublasLtGetStatusName(cublasStatus_t status) { return shim::BlasStatusName(status); }
const char* cublasLtGetStatusString(cublasStatus_t status) { return shim::BlasStatusText(status); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (desc == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const cublasStatus_t status =
      Send<ipc::Op::cublasLtMatmulDescCreate>(false, desc, compute, scale);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  LtMatmulDesc* const made = FindDesc(*desc);
  made->compute = compute;
  made->scale = scale;
  return status;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return Send<ipc::Op::cublasLtMatmulDescDestroy>(false, desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  LtMatmulDesc* const found = FindDesc(desc);
  if (found == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const cublasStatus_t status =
      Send<ipc::Op::cublasLtMatmulDescSetAttribute>(false, desc, attribute, value, bytes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  int32_t word = 0;
  if (bytes >= sizeof word) std::memcpy(&word, value, sizeof word);
  if (attribute == CUBLASLT_MATMUL_DESC_POINTER_MODE)
    found->pointer_mode = static_cast<cublasLtPointerMode_t>(word);
  if (attribute == CUBLASLT_MATMUL_DESC_SCALE_TYPE) found->scale = static_cast<cudaDataType>(word);
  return status;
}

cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t* desc,
                                                 cudaDataType scale) {
  if (desc == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return Send<ipc::Op::cublasLtMatrixTransformDescCreate>(false, desc, scale);
}
cublasStatus_t cublasLtMatrixTransformDescDestroy(cublasLtMatrixTransformDesc_t desc) {
  return Send<ipc::Op::cublasLtMatrixTransformDescDestroy>(false, desc);
}
cublasStatus_t cublasLtMatrixTransformDescSetAttribute(
    cublasLtMatrixTransformDesc_t desc, cublasLtMatrixTransformDescAttributes_t attribute,
    const void* value, size_t bytes) {
  return Send<ipc::Op::cublasLtMatrixTransformDescSetAttribute>(false, desc, attribute, value,
                                                                bytes);
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t, size_t, cudaDataType,
                                                 uint64_t, uint64_t, int64_t) {
  return RefuseInPlace();
}
cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t, size_t, cublasComputeType_t,
                                               cudaDataType_t) {
  return RefuseInPlace();
}
cublasStatus_t cublasLtMatrixTransformDescInit_internal(cublasLtMatrixTransformDesc_t, size_t,
                                                        cudaDataType) {
  return RefuseInPlace();
}
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t, size_t) {
  return RefuseInPlace();
}

}  // namespace local
