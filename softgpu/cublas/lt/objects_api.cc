// Descriptors of cublasLt: creating, destroying, and their attributes.
#include <algorithm>
#include <cstring>

#include "softgpu/cublas/api/bind.h"
#include "softgpu/cublas/lt/objects.h"

namespace softgpu::cublas {
namespace {

struct Attribute {
  int id;
  size_t offset, bytes;
};

#define ATTRIBUTE(id, type, member) \
  { id, offsetof(type, member), sizeof(type::member) }

template <class T>
constexpr Attribute kAttributes[1] = {};

template <>
constexpr Attribute kAttributes<MatrixLayout>[] = {
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_TYPE, MatrixLayout, type),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ORDER, MatrixLayout, order),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ROWS, MatrixLayout, rows),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_COLS, MatrixLayout, columns),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_LD, MatrixLayout, ld),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, MatrixLayout, batch_count),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, MatrixLayout, batch_stride),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, MatrixLayout, plane_offset),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, MatrixLayout, batch_mode),
};

template <>
constexpr Attribute kAttributes<MatmulDesc>[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, MatmulDesc, compute_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_SCALE_TYPE, MatmulDesc, scale_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_POINTER_MODE, MatmulDesc, pointer_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSA, MatmulDesc, op_a),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSB, MatmulDesc, op_b),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSC, MatmulDesc, op_c),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_FILL_MODE, MatmulDesc, fill_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE, MatmulDesc, epilogue),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_POINTER, MatmulDesc, bias),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, MatmulDesc, bias_batch_stride),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, MatmulDesc, aux),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, MatmulDesc, aux_ld),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, MatmulDesc, aux_batch_stride),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, MatmulDesc,
              alpha_vector_batch_stride),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, MatmulDesc, sm_count_target),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, MatmulDesc, a_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, MatmulDesc, b_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, MatmulDesc, c_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, MatmulDesc, d_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, MatmulDesc, d_amax),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, MatmulDesc, aux_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, MatmulDesc, aux_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, MatmulDesc, aux_amax),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_FAST_ACCUM, MatmulDesc, fast_accumulation),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, MatmulDesc, bias_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, MatmulDesc, a_scale_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, MatmulDesc, b_scale_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, MatmulDesc, c_scale_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, MatmulDesc, d_scale_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, MatmulDesc, aux_scale_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, MatmulDesc, d_out_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, MatmulDesc, d_out_scale_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, MatmulDesc, emulation),
};

template <>
constexpr Attribute kAttributes<TransformDesc>[] = {
    ATTRIBUTE(CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, TransformDesc, scale_type),
    ATTRIBUTE(CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, TransformDesc, pointer_mode),
    ATTRIBUTE(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, TransformDesc, op_a),
    ATTRIBUTE(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, TransformDesc, op_b),
};

template <>
constexpr Attribute kAttributes<MatmulPreference>[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_SEARCH_MODE, MatmulPreference, search_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, MatmulPreference, workspace_bytes_max),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, MatmulPreference, reduction_scheme_mask),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, MatmulPreference, alignment_a),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, MatmulPreference, alignment_b),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, MatmulPreference, alignment_c),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, MatmulPreference, alignment_d),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, MatmulPreference, waves_max),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_IMPL_MASK, MatmulPreference, implementation_mask),
};

template <>
constexpr Attribute kAttributes<EmulationDesc>[] = {
    ATTRIBUTE(CUBLASLT_EMULATION_DESC_STRATEGY, EmulationDesc, strategy),
    ATTRIBUTE(CUBLASLT_EMULATION_DESC_SPECIAL_VALUES_SUPPORT, EmulationDesc, special_values),
    ATTRIBUTE(CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_CONTROL, EmulationDesc, mantissa_control),
    ATTRIBUTE(CUBLASLT_EMULATION_DESC_FIXEDPOINT_MAX_MANTISSA_BIT_COUNT, EmulationDesc,
              mantissa_bits_max),
    ATTRIBUTE(CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_OFFSET, EmulationDesc,
              mantissa_bit_offset),
    ATTRIBUTE(CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER, EmulationDesc,
              mantissa_bit_count),
};

template <>
constexpr Attribute kAttributes<MatmulAlgo>[] = {
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_ID, MatmulAlgo, id),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_TILE_ID, MatmulAlgo, tile),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, MatmulAlgo, split_k),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, MatmulAlgo, reduction_scheme),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, MatmulAlgo, swizzling),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, MatmulAlgo, custom_option),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_STAGES_ID, MatmulAlgo, stages),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, MatmulAlgo, inner_shape),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, MatmulAlgo, cluster_shape),
};
#undef ATTRIBUTE

template <class T>
const Attribute* FindAttribute(int id) {
  const Attribute* const found =
      std::find_if(std::begin(kAttributes<T>), std::end(kAttributes<T>),
                   [id](const Attribute& attribute) { return attribute.id == id; });
  return found == std::end(kAttributes<T>) ? nullptr : found;
}

template <class T, class Id>
cublasStatus_t SetAttribute(typename T::Opaque* object, Id id, const void* value, size_t bytes) {
  const Attribute* const attribute = FindAttribute<T>(id);
  if (object == nullptr || value == nullptr || attribute == nullptr || bytes != attribute->bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(reinterpret_cast<char*>(object) + attribute->offset, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// With a size of 0, only says how large the value is.
template <class T, class Object, class Id>
cublasStatus_t GetAttribute(Object* object, Id id, void* value, size_t bytes, size_t* written) {
  const Attribute* const attribute = FindAttribute<T>(id);
  if (object == nullptr || attribute == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes == 0) {
    if (written == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *written = attribute->bytes;
    return CUBLAS_STATUS_SUCCESS;
  }
  if (value == nullptr || bytes < attribute->bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, reinterpret_cast<const char*>(object) + attribute->offset, attribute->bytes);
  if (written != nullptr) *written = attribute->bytes;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t Place(typename T::Opaque* object, size_t size, const T& value) {
  if (object == nullptr || size < sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(static_cast<void*>(object), 0, size);
  *Contents<T>(object) = value;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t Allocate(typename T::Opaque** object, const T& value) {
  if (object == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  typename T::Opaque* const memory = new (std::nothrow) typename T::Opaque;
  if (memory == nullptr) return CUBLAS_STATUS_ALLOC_FAILED;
  *object = memory;
  return Place<T>(memory, sizeof(*memory), value);
}

template <class T>
cublasStatus_t Destroy(typename T::Opaque* object) {
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

MatrixLayout Layout(cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
  MatrixLayout layout;
  layout.type = type;
  layout.rows = rows;
  layout.columns = columns;
  layout.ld = ld;
  return layout;
}
cublasStatus_t LayoutInit(cublasLtMatrixLayout_t object, size_t size, cudaDataType type,
                          uint64_t rows, uint64_t columns, int64_t ld) {
  return Place<MatrixLayout>(object, size, Layout(type, rows, columns, ld));
}
cublasStatus_t LayoutCreate(cublasLtMatrixLayout_t* object, cudaDataType type, uint64_t rows,
                            uint64_t columns, int64_t ld) {
  return Allocate<MatrixLayout>(object, Layout(type, rows, columns, ld));
}

MatmulDesc Matmul(cublasComputeType_t compute_type, cudaDataType scale_type) {
  MatmulDesc desc;
  desc.compute_type = compute_type;
  desc.scale_type = scale_type;
  return desc;
}
cublasStatus_t MatmulInit(cublasLtMatmulDesc_t object, size_t size, cublasComputeType_t compute,
                          cudaDataType_t scale) {
  return Place<MatmulDesc>(object, size, Matmul(compute, scale));
}
cublasStatus_t MatmulCreate(cublasLtMatmulDesc_t* object, cublasComputeType_t compute,
                            cudaDataType_t scale) {
  return Allocate<MatmulDesc>(object, Matmul(compute, scale));
}

TransformDesc Transform(cudaDataType scale_type) {
  TransformDesc desc;
  desc.scale_type = scale_type;
  return desc;
}
cublasStatus_t TransformInit(cublasLtMatrixTransformDesc_t object, size_t size,
                             cudaDataType scale) {
  return Place<TransformDesc>(object, size, Transform(scale));
}
cublasStatus_t TransformCreate(cublasLtMatrixTransformDesc_t* object, cudaDataType scale) {
  return Allocate<TransformDesc>(object, Transform(scale));
}

cublasStatus_t PreferenceInit(cublasLtMatmulPreference_t object, size_t size) {
  return Place<MatmulPreference>(object, size, {});
}
cublasStatus_t PreferenceCreate(cublasLtMatmulPreference_t* object) {
  return Allocate<MatmulPreference>(object, {});
}
cublasStatus_t EmulationInit(cublasLtEmulationDesc_t object, size_t size) {
  return Place<EmulationDesc>(object, size, {});
}
cublasStatus_t EmulationCreate(cublasLtEmulationDesc_t* object) {
  return Allocate<EmulationDesc>(object, {});
}

}  // namespace
}  // namespace softgpu::cublas

using namespace softgpu::cublas;  // NOLINT: the exports below are C symbols

// Destroy, SetAttribute and GetAttribute of one kind of descriptor.
#define SOFTGPU_EXPORT_ATTRIBUTES(name, type, id)                         \
  SOFTGPU_EXPORT(cublasLt##name##Destroy, &Destroy<type>)                 \
  SOFTGPU_EXPORT(cublasLt##name##SetAttribute, (&SetAttribute<type, id>)) \
  SOFTGPU_EXPORT(cublasLt##name##GetAttribute, (&GetAttribute<type, type::Opaque, id>))

SOFTGPU_EXPORT(cublasLtMatrixLayoutInit_internal, &LayoutInit)
SOFTGPU_EXPORT(cublasLtMatrixLayoutCreate, &LayoutCreate)
SOFTGPU_EXPORT_ATTRIBUTES(MatrixLayout, MatrixLayout, cublasLtMatrixLayoutAttribute_t)
SOFTGPU_EXPORT(cublasLtMatmulDescInit_internal, &MatmulInit)
SOFTGPU_EXPORT(cublasLtMatmulDescCreate, &MatmulCreate)
SOFTGPU_EXPORT_ATTRIBUTES(MatmulDesc, MatmulDesc, cublasLtMatmulDescAttributes_t)
SOFTGPU_EXPORT(cublasLtMatrixTransformDescInit_internal, &TransformInit)
SOFTGPU_EXPORT(cublasLtMatrixTransformDescCreate, &TransformCreate)
SOFTGPU_EXPORT_ATTRIBUTES(MatrixTransformDesc, TransformDesc,
                          cublasLtMatrixTransformDescAttributes_t)
SOFTGPU_EXPORT(cublasLtMatmulPreferenceInit_internal, &PreferenceInit)
SOFTGPU_EXPORT(cublasLtMatmulPreferenceCreate, &PreferenceCreate)
SOFTGPU_EXPORT_ATTRIBUTES(MatmulPreference, MatmulPreference, cublasLtMatmulPreferenceAttributes_t)
SOFTGPU_EXPORT(cublasLtEmulationDescInit_internal, &EmulationInit)
SOFTGPU_EXPORT(cublasLtEmulationDescCreate, &EmulationCreate)
SOFTGPU_EXPORT_ATTRIBUTES(EmulationDesc, EmulationDesc, cublasLtEmulationDescAttributes_t)
SOFTGPU_EXPORT(cublasLtMatmulAlgoConfigSetAttribute,
               (&SetAttribute<MatmulAlgo, cublasLtMatmulAlgoConfigAttributes_t>))
SOFTGPU_EXPORT(
    cublasLtMatmulAlgoConfigGetAttribute,
    (&GetAttribute<MatmulAlgo, const MatmulAlgo::Opaque, cublasLtMatmulAlgoConfigAttributes_t>))
