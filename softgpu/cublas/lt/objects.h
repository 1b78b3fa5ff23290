// What the opaque descriptors of cublasLt hold, and their attributes as tables.
//
// A program may keep a descriptor in memory of its own (the Init functions), so each is a plain
// value that fits the vendor's opaque type. Thread safety: as in cublasLt, a descriptor may be read
// by many threads and written by one.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace softgpu::cublas {

struct MatrixLayout {
  using Opaque = cublasLtMatrixLayoutOpaque_t;
  int32_t type = CUDA_R_32F;
  int32_t order = CUBLASLT_ORDER_COL;
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t ld = 0;
  int32_t batch_count = 1;
  uint32_t batch_mode = CUBLASLT_BATCH_MODE_STRIDED;
  int64_t batch_stride = 0;
  int64_t plane_offset = 0;
};

struct MatmulDesc {
  using Opaque = cublasLtMatmulDescOpaque_t;
  int32_t compute_type = CUBLAS_COMPUTE_32F;
  int32_t scale_type = CUDA_R_32F;
  int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  int32_t op_a = CUBLAS_OP_N;
  int32_t op_b = CUBLAS_OP_N;
  int32_t op_c = CUBLAS_OP_N;
  int32_t fill_mode = CUBLAS_FILL_MODE_FULL;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  int64_t bias_batch_stride = 0;
  void* aux = nullptr;
  int64_t aux_ld = 0;
  int64_t aux_batch_stride = 0;
  int64_t alpha_vector_batch_stride = 0;
  const void* a_scale = nullptr;
  const void* b_scale = nullptr;
  const void* c_scale = nullptr;
  const void* d_scale = nullptr;
  void* d_amax = nullptr;
  void* aux_scale = nullptr;
  void* aux_amax = nullptr;
  void* d_out_scale = nullptr;
  void* emulation = nullptr;
  int32_t sm_count_target = 0;
  int32_t aux_type = -1;
  int32_t bias_type = -1;
  int32_t a_scale_mode = 0;
  int32_t b_scale_mode = 0;
  int32_t c_scale_mode = 0;
  int32_t d_scale_mode = 0;
  int32_t aux_scale_mode = 0;
  int32_t d_out_scale_mode = 0;
  int8_t fast_accumulation = 0;
};

struct TransformDesc {
  using Opaque = cublasLtMatrixTransformDescOpaque_t;
  int32_t scale_type = CUDA_R_32F;
  int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  int32_t op_a = CUBLAS_OP_N;
  int32_t op_b = CUBLAS_OP_N;
};

struct MatmulPreference {
  using Opaque = cublasLtMatmulPreferenceOpaque_t;
  uint32_t search_mode = CUBLASLT_SEARCH_BEST_FIT;
  uint32_t reduction_scheme_mask = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint64_t workspace_bytes_max = 0;
  uint32_t alignment_a = 256;
  uint32_t alignment_b = 256;
  uint32_t alignment_c = 256;
  uint32_t alignment_d = 256;
  uint64_t implementation_mask = ~uint64_t{0};
  float waves_max = 0;
};

struct EmulationDesc {
  using Opaque = cublasLtEmulationDescOpaque_t;
  int32_t strategy = CUBLAS_EMULATION_STRATEGY_DEFAULT;
  int32_t special_values = 0xFFFF;
  int32_t mantissa_control = 0;
  int32_t mantissa_bits_max = 0;
  int32_t mantissa_bit_offset = 0;
  int32_t* mantissa_bit_count = nullptr;
};

// The one algorithm there is. Its configuration can be written and read back, and changes nothing.
struct MatmulAlgo {
  using Opaque = cublasLtMatmulAlgo_t;
  static constexpr uint32_t kMagic = 0x736f6674;
  uint32_t magic = kMagic;
  int32_t id = 0;
  uint32_t tile = 0;
  int32_t split_k = 1;
  uint32_t reduction_scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
  uint32_t swizzling = 0;
  uint32_t custom_option = 0;
  uint32_t stages = 0;
  uint16_t inner_shape = 0;
  uint16_t cluster_shape = 0;
};

// The value that lies in the vendor's opaque memory.
template <class T>
T* Contents(typename T::Opaque* opaque) {
  static_assert(sizeof(T) <= sizeof(typename T::Opaque) && std::is_trivially_copyable_v<T>);
  return reinterpret_cast<T*>(opaque);
}
template <class T>
const T* Contents(const typename T::Opaque* opaque) {
  return Contents<T>(const_cast<typename T::Opaque*>(opaque));
}

}  // namespace softgpu::cublas
