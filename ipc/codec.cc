#include "ipc/codec.h"

#include <algorithm>
#include <cassert>

#include "ipc/calls/capped.h"

namespace ipc {

namespace {

uint64_t CountOf(std::span<const Param> params, size_t index, Values values) {
  assert(index < params.size() && params[index].role.kind == RoleKind::kValue);
  const Param& param = params[index];
  const int64_t count = IntegerOf(param, values[index]);
  if (!param.is_signed) return static_cast<uint64_t>(count);
  return static_cast<uint64_t>(std::max<int64_t>(count, 0));
}

template <class T>
int64_t Load(const void* value) {
  T loaded;
  std::memcpy(&loaded, value, sizeof loaded);
  return static_cast<int64_t>(loaded);
}

}  // namespace

int64_t IntegerOf(const Param& param, const void* value) {
  switch (param.bytes) {
    case 1:
      return param.is_signed ? Load<int8_t>(value) : Load<uint8_t>(value);
    case 2:
      return param.is_signed ? Load<int16_t>(value) : Load<uint16_t>(value);
    case 4:
      return param.is_signed ? Load<int32_t>(value) : Load<uint32_t>(value);
    case 8:
      return Load<int64_t>(value);
    default:
      return 0;
  }
}

uint64_t ReachOf(std::span<const Param> params, size_t index, Values values) {
  const Param& param = params[index];
  const std::array<uint16_t, 4>& length = param.role.length;
  switch (param.role.rule) {
    case LengthRule::kConstant:
      return length[0];
    case LengthRule::kParam: {
      const uint64_t count = CountOf(params, length[0], values);
      if (param.role.kind == RoleKind::kDevicePtr) return CappedProduct(count, length[1]);
      if (param.role.kind != RoleKind::kValue) return CappedProduct(count, param.bytes);
      return length[1] == 0 ? count : CappedProduct(count, CountOf(params, length[1], values));
    }
    case LengthRule::kPitched: {
      const uint64_t pitch = CountOf(params, length[0], values);
      const uint64_t row = CappedProduct(CountOf(params, length[1], values), length[3]);
      const uint64_t rows = CountOf(params, length[2], values);
      return row == 0 || rows == 0 ? 0 : CappedSum(CappedProduct(pitch, rows - 1), row);
    }
    default:
      return 0;
  }
}

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
