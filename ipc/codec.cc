#include "ipc/codec.h"

namespace ipc {

bool PutReply(const Row& row, uint32_t status, Values values, Writer& out) {
  out.Put(status);
  for (const bool ranges : {false, true}) {
    for (const size_t i : Members(row.sets.returned)) {
      const Param& param = row.params[i];
      if (ranges != (param.role.kind == RoleKind::kBytesOut)) continue;
      if (status != 0 && !param.role.on_failure) continue;
      const void* from = nullptr;
      std::memcpy(&from, values[i], sizeof from);
      if (from == nullptr) continue;
      out.Raw(from, ranges ? ReachOf(row.params, i, values) : param.bytes);
    }
  }
  return out.ok();
}

size_t BytesOfDataType(cudaDataType type) {
  switch (type) {
    case CUDA_R_8I:
    case CUDA_R_8U:
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
      return 1;
    case CUDA_C_8I:
    case CUDA_C_8U:
    case CUDA_R_16F:
    case CUDA_R_16BF:
    case CUDA_R_16I:
    case CUDA_R_16U:
      return 2;
    case CUDA_R_32F:
    case CUDA_R_32I:
    case CUDA_R_32U:
    case CUDA_C_16F:
    case CUDA_C_16BF:
    case CUDA_C_16I:
    case CUDA_C_16U:
      return 4;
    case CUDA_R_64F:
    case CUDA_R_64I:
    case CUDA_R_64U:
    case CUDA_C_32F:
    case CUDA_C_32I:
    case CUDA_C_32U:
      return 8;
    case CUDA_C_64F:
    case CUDA_C_64I:
    case CUDA_C_64U:
      return 16;
    default:
      return 0;
  }
}

size_t BytesOfScale(cublasComputeType_t compute, cudaDataType operand) {
  const bool complex_operand = operand == CUDA_C_32F || operand == CUDA_C_64F ||
                               operand == CUDA_C_16F || operand == CUDA_C_16BF ||
                               operand == CUDA_C_8I || operand == CUDA_C_8U;
  const size_t parts = complex_operand ? 2 : 1;
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return 2 * parts;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
    case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
      return 8 * parts;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return 4;
    default:
      return 4 * parts;  // every other type accumulates in 32-bit floating point
  }
}

bool IsHostPointer(cublasLtMatmulDescAttributes_t attribute) {
  return attribute == CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR;
}

bool IsAddress(cublasLtMatmulDescAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_C_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_AMAX_D_POINTER:
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER:
    case CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER:
      return true;
    default:
      return false;
  }
}

}  // namespace ipc
